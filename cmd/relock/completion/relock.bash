# What bash completes for relock is what relock itself says; bash 3.2 or later.
_relock() {
    local line how=
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $how == words ]]; then
            COMPREPLY+=("$line")
        elif [[ -z $how ]]; then
            how=$line
        fi
    done < <("${1/#\~\//$HOME/}" complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    case $how in
    files) compopt -o filenames 2>/dev/null ;;
    commands) ;;
    *) return ;;
    esac
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(if [[ $how == files ]]; then compgen -f -- "$2"; else compgen -c -- "$2"; fi)
}
complete -F _relock relock
