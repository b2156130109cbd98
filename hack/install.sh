# Sourced by the scripts that need programs and packages from elsewhere.

# install_debian installs Debian packages.
install_debian() {
  if ! command -v apt-get >/dev/null; then
    echo "cannot install $*: this machine has no apt-get; install them by hand and run again" >&2
    exit 1
  fi
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "cannot install $*: run as root or install sudo" >&2; exit 1; }
    sudo=(sudo)
  fi
  echo "installing $*" >&2
  "${sudo[@]}" apt-get update -qq
  # Packages of servers would start them on their usual ports; the tests start their own.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# need_programs installs what is not there of programs, each given with its Debian
# package as program:package.
need_programs() {
  local each missing=()
  for each in "$@"; do
    command -v "${each%%:*}" >/dev/null || missing+=("${each#*:}")
  done
  if [ ${#missing[@]} -gt 0 ]; then install_debian "${missing[@]}"; fi
}

# once runs a command when what it depends on (the files in front of --) or the version
# of what it installs for has changed since it last succeeded in a folder.
once() {
  local folder=$1 version=$2 stamp; shift 2
  local inputs=()
  while [ "$1" != -- ]; do inputs+=("$1"); shift; done
  shift
  stamp=$({ echo "$version"; cat "${inputs[@]}"; } | sha256sum)
  [ "$(cat "$folder/.stamp" 2>/dev/null)" = "$stamp" ] && return
  rm -rf "$folder"
  mkdir -p "$folder"
  "$@" "$folder"
  echo "$stamp" >"$folder/.stamp"
}

# install_npm installs what the lock file of the first folder says into the second.
# Some packages ask for a newer Node than Debian has, and work with Debian's all the
# same: the log level hides npm's warning of that.
install_npm() {
  cp "$1/package.json" "$1/package-lock.json" "$2/"
  (cd "$2" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
}
