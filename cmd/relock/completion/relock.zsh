#compdef relock
# What zsh completes for relock is what relock itself says.
_relock() {
    local line how
    local -a candidates shown
    while IFS= read -r line; do
        if [[ $how == words ]]; then
            candidates+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        elif [[ -z $how ]]; then
            how=$line
        fi
    done < <("${words[1]/#\~\//$HOME/}" complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    case $how in
    words) compadd -l -d shown -a -- candidates ;;
    files) _files ;;
    command\ *)
        local begins=$((${how#command } + 2))
        words=("${(@)words[begins,-1]}")
        ((CURRENT -= begins - 1))
        _normal
        ;;
    esac
}
if [[ $funcstack[1] == _relock ]]; then
    _relock "$@"
else
    compdef _relock relock
fi
