# SPDX-License-Identifier: Apache-2.0
# source set_env.sh, in bash or zsh: the environment of programs for acl and aclnn. The folder may
# be moved; nothing of it is written down here.

_moeperm_set_env() {
  local file root arch
  if [ -n "${BASH_VERSION:-}" ]; then
    file=${BASH_SOURCE[0]}
  elif [ -n "${ZSH_VERSION:-}" ]; then
    eval 'file=${(%):-%x}'
  else
    echo "set_env.sh: source it in bash or zsh" >&2
    return 1
  fi
  root=$(CDPATH='' cd -- "$(dirname -- "$file")" && pwd) || return 1
  arch=$(uname -m)

  export ASCEND_TOOLKIT_HOME="$root"
  export ASCEND_HOME_PATH="$root"
  export ASCEND_OPP_PATH="$root/opp"
  export ASCEND_AICPU_PATH="$root"
  export TOOLCHAIN_HOME="$root/toolkit"
  _moeperm_prepend LD_LIBRARY_PATH "$root/$arch-linux/lib64"
  _moeperm_prepend LD_LIBRARY_PATH "$root/lib64"
  _moeperm_prepend PATH "$root/bin"
}

# Sourced twice, a folder is there once. An empty list gets no empty element: that would mean the
# current folder.
_moeperm_prepend() { # variable folder
  local value
  eval "value=\${$1:-}"
  case ":$value:" in
    *":$2:"*) ;;
    *) export "$1=$2${value:+:$value}" ;;
  esac
}

if _moeperm_set_env; then
  unset -f _moeperm_set_env _moeperm_prepend
else
  unset -f _moeperm_set_env _moeperm_prepend
  return 1
fi
