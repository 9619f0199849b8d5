# A cell, with its input and output: a file around it, so that an interrupt at its very end returns from here and not from the script.
__kern_at=1 \. "$__kern_code" <"$__kern"0 >"$__kern"1 2>"$__kern"2
__kern_status=$? __kern_at=''
