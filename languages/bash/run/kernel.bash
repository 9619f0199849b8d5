# A kernel of bash sources this once; then come three lines a cell (../../programs/cells.c): __kern_begin, the cell itself, __kern_end.
# Between two cells the output of all this goes nowhere, so that `set -x` or a DEBUG trap of the code stay unheard.
BASH_ARGV0=bash
exec >/dev/null 2>&1
export KERN_RESULT_CALL
__kern_at='' # not empty: in a cell

# An interrupt returns from all functions and files that the cell is in: from the one at work, and by a DEBUG trap from those around
# it. A DEBUG trap of the code is gone then: bash has put it away while a function is at work.
__kern_trap='if [[ ${__kern_at-} ]]; then __kern_at="" __kern_hit=1; __kern_unwind; builtin return 0; fi'

__kern_unwind() {
	[[ :$SHELLOPTS: == *:functrace:* ]] || __kern_hit=untrace
	builtin trap 'if [[ ${FUNCNAME-} && $FUNCNAME != __kern_* ]]; then builtin return 0; fi' DEBUG
	builtin set -T
}

readonly __kern __kern_trap
builtin trap : TERM QUIT # as if ignored, which an interactive bash does, but what the cell starts has its own again

# Behind a cell: are builtin and printf themselves? Else a function has taken the place of the one, or printf is switched off. In POSIX mode
# `unset` is itself whatever functions there are: behind it `builtin` is, too, and all that goes through it.
__kern_own() {
	__kern_sure=''
	builtin printf -v __kern_sure yes
	[[ $__kern_sure != yes ]] || builtin return 0
	if [[ :$SHELLOPTS: == *:posix:* ]]; then
		unset -f builtin
	else
		POSIXLY_CORRECT=1
		unset -f builtin
		unset POSIXLY_CORRECT
		__kern_restore ":$BASHOPTS:" # as they were
	fi
}

# BASHOPTS: those that the mode has changed.
__kern_restore() {
	[[ $1 == *:inherit_errexit:* ]] || builtin shopt -u inherit_errexit
	[[ $1 == *:interactive_comments:* ]] || builtin shopt -u interactive_comments
	[[ $1 != *:expand_aliases:* ]] || builtin shopt -s expand_aliases
	[[ $1 != *:shift_verbose:* ]] || builtin shopt -s shift_verbose
}

__kern_say() {
	builtin printf '%s\n' "$1" >"$__kern"5 || "${BASH_SOURCE%/*}/kern-cells" --say "$1" "${__kern}5"
}

__kern_begin() { # NUMBER
	KERN_RESULT_CALL=$1 __kern_hit=''
	builtin trap "$__kern_trap" INT
	__kern_at=1
	__kern_say "begin $1"
}

__kern_end() { # STATUS NUMBER
	__kern_at=''
	__kern_own
	if [[ ${__kern_hit-} ]]; then
		builtin trap - DEBUG
		[[ $__kern_hit != untrace ]] || builtin set +T
		__kern_say "done $2 interrupted 130"
	elif [[ $1 == 0 ]]; then
		__kern_say "done $2 ok 0"
	else
		__kern_say "done $2 error $1"
	fi
}

readonly -f __kern_unwind __kern_own __kern_restore __kern_say __kern_begin __kern_end
__kern_say ready
