# A kernel of sh sources this once; then come three lines a cell (../../programs/cells.c): __kern_begin, the cell itself, __kern_end.
# `unset` and `trap` are special builtins: functions of their names do not come before them.
exec >/dev/null 2>&1
readonly __kern
trap : TERM QUIT # as if ignored, but what the cell starts has its own again
export KERN_RESULT_CALL
__kern_at=''

__kern_say() {
	command printf '%s\n' "$1" >"$__kern"5
}

__kern_begin() { # NUMBER
	unset -f command
	KERN_RESULT_CALL=$1 __kern_hit='' __kern_at=1
	trap 'case ${__kern_at-} in 1) __kern_hit=hit; return 130 ;; esac' INT
	__kern_say "begin $1"
}

__kern_end() { # STATUS NUMBER
	__kern_at=''
	unset -f command
	case ${__kern_hit:-$1} in
	hit) __kern_say "done $2 interrupted 130" ;;
	0) __kern_say "done $2 ok 0" ;;
	*) __kern_say "done $2 error $1" ;;
	esac
}

__kern_say ready
