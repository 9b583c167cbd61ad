#!/bin/sh
# Installs taskmill: three executables, into ~/.local/bin.
#
#   curl -fsSL <address of this file> | sh
#   sh install.sh --version 0.1.0 --prefix /usr/local
#   sh install.sh --uninstall
#
# It downloads the archive of this platform, verifies its checksum, and replaces each executable in one step. It needs no
# root, and changes nothing but files below the prefix: bin/taskmill, bin/taskmill-control, bin/taskmill-runtime, and
# share/taskmill/installed, the list of what was installed.
set -eu

# A release fills in both lines.
VERSION_OF_RELEASE=
RELEASES_OF_RELEASE=

PROGRAMS='taskmill taskmill-control taskmill-runtime'

usage() {
  cat <<'END'
Usage: install.sh [flags]

Flags:
  --version VERSION   Installs this version. Default: the version of this installer.
  --prefix DIRECTORY  Installs into DIRECTORY/bin. Default: ~/.local
  --uninstall         Removes what the installer put below the prefix.
  --help              Shows this text.

Environment:
  TASKMILL_RELEASES   Address below which each release has a directory v<version>.
END
}

say() { printf '%s\n' "$*"; }
fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}
misused() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 2
}
has() { command -v "$1" >/dev/null 2>&1; }

# Prints the name of this platform.
platform() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no release for $(uname -s): only for Linux and macOS (build it from source)" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) fail "there is no release for the processor $(uname -m): only for x86_64 and arm64" ;;
  esac
  # A shell that runs under Rosetta says x86_64.
  if [ "$os-$cpu" = darwin-x64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then cpu=arm64; fi
  variant=
  if [ "$os" = linux ]; then
    for loader in /lib/ld-musl-*; do
      if [ -e "$loader" ] && ! [ -e /lib64/ld-linux-x86-64.so.2 ] && ! [ -e /lib/ld-linux-aarch64.so.1 ]; then variant=-musl; fi
    done
    if [ "$cpu$variant" = x64 ] && ! grep -qw avx2 /proc/cpuinfo 2>/dev/null; then variant=-baseline; fi
  fi
  say "$os-$cpu$variant"
}

# download URL FILE
download() {
  case $1 in
    https://*) only=https ;;
    # Plain HTTP only from this machine: nothing would protect the checksums either.
    http://127.0.0.1[:/]* | http://localhost[:/]*) only=http ;;
    *) fail "the address of the release must begin with https://: $1" ;;
  esac
  if has curl; then
    curl --proto "=$only" --fail --silent --show-error --location --retry 3 --output "$2" "$1" || fail "cannot download $1"
  elif has wget; then
    wget -q -O "$2" "$1" || fail "cannot download $1"
  else
    fail 'curl or wget is needed to download the release'
  fi
}

# Prints the SHA-256 of a file.
sha256() {
  if has sha256sum; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif has shasum; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif has openssl; then
    openssl dgst -sha256 <"$1" | sed 's/^.*= *//'
  else
    fail 'sha256sum, shasum or openssl is needed to verify the download'
  fi
}

# Whether all executables of the list are as they were installed.
is_whole() {
  for program in $PROGRAMS; do
    hash=$(sed -n "s|^\([0-9a-f]*\)  bin/$program\$|\1|p" "$list")
    [ -n "$hash" ] && [ -f "$prefix/bin/$program" ] && [ "$(sha256 "$prefix/bin/$program")" = "$hash" ] || return 1
  done
}

# Whether the services run that this user has started with taskmill up.
is_running() { "$prefix/bin/taskmill" status -o json 2>/dev/null | grep -q '"running": *true'; }

uninstall() {
  [ -f "$list" ] || fail "taskmill is not installed below $prefix ($list does not exist)"
  if is_running; then fail "the services run: end them with $prefix/bin/taskmill down first"; fi
  kept=
  for program in $PROGRAMS; do
    file=$prefix/bin/$program
    [ -e "$file" ] || continue
    hash=$(sed -n "s|^\([0-9a-f]*\)  bin/$program\$|\1|p" "$list")
    if [ "$(sha256 "$file")" = "$hash" ]; then
      rm -f "$file"
      say "removed $file"
    else
      say "kept $file: it was changed after its installation"
      kept=yes
    fi
  done
  rm -f "$list"
  rmdir "$(dirname "$list")" 2>/dev/null || true
  state=${XDG_STATE_HOME:-${HOME:-}/.local/state}/taskmill
  if [ -d "$state" ]; then say "Kept $state: graphs, results, logs and the token of taskmill up. Remove it if you do not need them."; fi
  say 'Configuration files of agent hosts were not touched.'
  [ -z "$kept" ] || exit 1
}

install() {
  [ -n "$version" ] || misused 'no version: use --version, or the installer of a release'
  [ -n "$releases" ] || misused 'no address to download from: set TASKMILL_RELEASES, or use the installer of a release'
  name=taskmill-$version-$(platform)
  if [ -f "$list" ] && [ "$(head -n 1 "$list")" = "# $name" ] && is_whole; then
    say "taskmill $version is installed already in $prefix/bin."
    return
  fi
  mkdir -p "$prefix/bin" "$(dirname "$list")" || fail "cannot create $prefix/bin (choose another directory with --prefix)"
  # In the same file system as the target, so that each executable is replaced in one step.
  aside=$(mktemp -d "$prefix/bin/.taskmill-install.XXXXXX") || fail "cannot write to $prefix/bin (choose another directory with --prefix)"
  trap 'rm -rf "$aside"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP

  say "Downloading $name ..."
  download "$releases/v$version/SHA256SUMS" "$aside/SHA256SUMS"
  archive=$name.tar.gz
  # Half the size: it stores what the executables share only once.
  if has zstd && grep -q " $name.tar.zst\$" "$aside/SHA256SUMS"; then archive=$name.tar.zst; fi
  expected=$(sed -n "s|^\([0-9a-f]\{64\}\)  $archive\$|\1|p" "$aside/SHA256SUMS")
  [ -n "$expected" ] || fail "release $version has no archive $archive"
  download "$releases/v$version/$archive" "$aside/$archive"
  actual=$(sha256 "$aside/$archive")
  [ "$actual" = "$expected" ] || fail "the checksum of $archive is $actual, but SHA256SUMS says $expected: nothing was installed"
  case $archive in
    *.zst) zstd -q -d -c "$aside/$archive" | tar -xf - -C "$aside" ;;
    *) tar -xzf "$aside/$archive" -C "$aside" ;;
  esac
  for program in $PROGRAMS; do [ -f "$aside/$name/$program" ] || fail "$archive does not contain $program"; done
  "$aside/$name/taskmill" --version >/dev/null || fail "taskmill of $name does not run on this machine: nothing was installed"

  {
    say "# $name"
    for program in $PROGRAMS; do say "$(sha256 "$aside/$name/$program")  bin/$program"; done
  } >"$aside/installed"
  for program in $PROGRAMS; do mv -f "$aside/$name/$program" "$prefix/bin/$program"; done
  mv -f "$aside/installed" "$list"

  say "Installed taskmill $version: $prefix/bin/taskmill, taskmill-control and taskmill-runtime."
  case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) say "$prefix/bin is not in PATH. Add this line to the start-up file of your shell:" '' "  export PATH=\"$prefix/bin:\$PATH\"" '' ;;
  esac
  if is_running; then
    say 'The services that run still have their old executables: taskmill down, then taskmill up.'
    return
  fi
  say 'Next: taskmill up, then taskmill install-mcp --client claude --write (or codex, cursor, vscode)'
}

version=$VERSION_OF_RELEASE
releases=${TASKMILL_RELEASES:-$RELEASES_OF_RELEASE}
prefix=${HOME:-}/.local
action=install
while [ $# -gt 0 ]; do
  case $1 in
    --version | --prefix)
      [ $# -gt 1 ] && [ -n "$2" ] || misused "$1 needs a value"
      if [ "$1" = --version ]; then version=${2#v}; else prefix=$2; fi
      shift 2
      ;;
    --uninstall) action=uninstall && shift ;;
    --help | -h) usage && exit 0 ;;
    *) misused "unknown flag $1 (see --help)" ;;
  esac
done
case $version in *[!0-9A-Za-z.+-]*) misused "--version must be a version such as 0.1.0: $version" ;; esac
case $prefix in
  /.local) misused 'HOME is not set: use --prefix' ;;
  /*) ;;
  *) prefix=$(pwd)/$prefix ;;
esac
list=$prefix/share/taskmill/installed
$action
