# shellcheck shell=bash
# need_packages WHAT-FOR PACKAGE...: installs the Debian packages that are missing, and says which. A person who is not
# root is asked first; without a terminal and without root it only works when sudo asks for no password.

missing_packages() {
	local package
	for package; do
		# shellcheck disable=SC2016 # a format of dpkg-query, not of the shell
		if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
			printf '%s\n' "$package"
		fi
	done
}

need_packages() {
	local what=$1 missing as_root=() try
	shift
	if ! command -v dpkg-query >/dev/null; then
		echo "This is no Debian or Ubuntu; needed $what: $*" >&2
		return 0
	fi
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "Missing packages $what: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null; then
			echo "As root: apt-get install ${missing[*]}" >&2
			return 1
		fi
		if [ -t 0 ]; then
			read -r -p "Install them with sudo? [Y/n] " try
			[[ $try =~ ^[Nn] ]] && return 1
			as_root=(sudo)
		else
			as_root=(sudo -n)
		fi
	fi
	for try in 1 2 3; do
		"${as_root[@]}" apt-get update -q && break
		[ "$try" -lt 3 ] || { echo "apt-get update failed three times" >&2; return 1; }
		sleep "$try"
	done
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}
