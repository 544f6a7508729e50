# What fish completes for relock is what relock itself says.
function __relock_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l lines ($program complete fish $words[2..-1] (string unescape -- "$current"; or echo "$current") 2>/dev/null)
    switch "$lines[1]"
        case words
            if set -q lines[2]
                printf '%s\n' $lines[2..-1]
            end
        case files
            __fish_complete_path "$current"
        case 'command *'
            set -l begins (math (string replace 'command ' '' -- $lines[1]) + 2)
            complete -C (string join ' ' -- (string escape -- $words[$begins..-1]) "$current")
    end
end
complete -c relock -f -a '(__relock_complete)'
