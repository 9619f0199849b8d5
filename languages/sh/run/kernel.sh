# A kernel of sh sources this once; then come three lines a cell (../../programs/cells.c): __kern_begin, cell.sh, __kern_end.
# `unset` and `trap` are special builtins: functions of their names do not come before them.
exec >/dev/null 2>&1
readonly __kern
trap : TERM QUIT # as if ignored, but what the cell starts has its own again
export KERN_RESULT_CALL
__kern_at=''

__kern_say() {
	command printf '%s\n' "$1" >"$__kern"5
}

# An interrupt returns from what the cell is at, or keeps it from beginning. Not from more: a `return` of a trap outside of all files and
# functions would end the script.
__kern_begin() { # NUMBER FILE
	unset -f command
	KERN_RESULT_CALL=$1 __kern_hit='' __kern_code=$2 __kern_status=130
	trap '__kern_hit=hit __kern_code=/dev/null; case ${__kern_at-} in 1) return 130 ;; esac' INT
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
