# Asked for by BASH_ENV=/run/kern/bash/errtrace.bash in a call's environment: the last command that failed, where nothing tested
# for it, becomes the error of the call, with its line. It sets the ERR trap and errtrace, and nothing else.
unset BASH_ENV # the shells that this one starts are not asked
__kern_display=${BASH_SOURCE[0]%/*}/kern-display __kern_depth=0 __kern_status=0

# STATUS LINE FILE FUNCTION DEPTH COMMAND. The calls on the way out fail with the same status: the innermost one tells.
__kern_failed() {
	if [ "$5" -ge "$__kern_depth" ] || [ "$1" -ne "$__kern_status" ]; then
		"$__kern_display" --failed "$1" "$2" "$3" "$4" "$6" 2>/dev/null
	fi
	__kern_depth=$5 __kern_status=$1
}

trap '__kern_failed "$?" "$LINENO" "${BASH_SOURCE[0]}" "${FUNCNAME[0]-}" "${#FUNCNAME[@]}" "$BASH_COMMAND"' ERR
set -E
