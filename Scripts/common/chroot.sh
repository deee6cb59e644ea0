# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the scripts that make a chroot of a Debian. To be sourced, with a function 'unavailable REASON', which exits.

# mirror - where this machine's apt gets Debian's packages, whatever the release
# shellcheck disable=SC2016 # To be expanded by apt.
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sort -u | sed -n 1p; }

# make_chroot RELEASE FOLDER OPTION... - makes one with mmdebstrap, from where this machine's apt gets Debian's packages, or
# from $DEBIAN_MIRROR. A mirror may be a snapshot, whose list of files has expired.
make_chroot() {
  local release=$1 folder=$2 mirror=${DEBIAN_MIRROR:-$(mirror)} keys=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v mmdebstrap >/dev/null || unavailable "mmdebstrap is not installed"
  [[ -n $mirror ]] || unavailable "this machine's apt has no mirror of Debian; DEBIAN_MIRROR can name one"
  [[ -f $keys ]] || unavailable "Debian's keys are not installed: debian-archive-keyring"
  rm -rf "$folder"
  mkdir -p "${folder%/*}"
  mmdebstrap --quiet "${@:3}" --keyring="$keys" --aptopt='Acquire::Check-Valid-Until "false"' \
    "$release" "$folder" "$mirror" || unavailable "mmdebstrap failed"
}
