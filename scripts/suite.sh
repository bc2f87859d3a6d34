# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# To be sourced: apt for another suite or another architecture than this machine's, with indexes of
# its own, so that this machine's package lists stay as they are. The mirror is the one that apt is
# configured with, and apt checks the signatures.
#
#	suite_open DIRECTORY SUITE ARCHITECTURE		SUITE "" is this machine's own
#	with_apt apt-get update				any command of apt, afterwards

suite_open() {
	suite_directory=$1/apt
	suite_architecture=$3
	# shellcheck disable=SC2016 # apt's own placeholders
	suite_mirror=$(apt-get indextargets --format '$(LABEL)|$(SITE)|$(CODENAME)' \
		'Created-By: Packages' | sed -n 's/^Debian|//p' | head -n 1)
	[ -n "$suite_mirror" ] || {
		echo "apt knows no Debian mirror here: configure one and run apt-get update" >&2
		return 1
	}
	mkdir -p "$suite_directory/lists/partial" "$suite_directory/cache/archives/partial"
	: >"$suite_directory/status"
	echo "deb [arch=$3 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"${suite_mirror%|*} ${2:-${suite_mirror#*|}} main" >"$suite_directory/sources.list"
}

with_apt() {
	suite_command=$1
	shift
	"$suite_command" -q -o APT::Architecture="$suite_architecture" \
		-o APT::Architectures="$suite_architecture" \
		-o Dir::Etc::SourceList="$suite_directory/sources.list" \
		-o Dir::Etc::SourceParts=- -o Dir::State::Lists="$suite_directory/lists" \
		-o Dir::State::status="$suite_directory/status" \
		-o Dir::Cache="$suite_directory/cache" -o Acquire::Languages=none \
		-o Acquire::Retries=3 -o APT::Sandbox::User=root "$@"
}
