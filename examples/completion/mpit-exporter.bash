# bash completion for mpit-exporter(1). The program itself knows what can stand where; only the first word is chosen here, as it
# may be a command or a flag of the default command, serve.
_mpit_exporter() {
	local cur=${COMP_WORDS[COMP_CWORD]} words i
	for ((i = 1; i < COMP_CWORD; i++)); do
		# What follows belongs to the program that exec or list runs.
		[[ ${COMP_WORDS[i]} != -- ]] || return 0
	done
	if ((COMP_CWORD == 1)) && [[ $cur == -* ]]; then
		words=$("${COMP_WORDS[0]}" --completion-bash serve -- 2>/dev/null)
	elif ((COMP_CWORD == 1)); then
		words=$("${COMP_WORDS[0]}" --completion-bash 2>/dev/null)
	else
		words=$("${COMP_WORDS[0]}" --completion-bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _mpit_exporter -o default mpit-exporter
