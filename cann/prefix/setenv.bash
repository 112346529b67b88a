# SPDX-License-Identifier: Apache-2.0
# source bin/setenv.bash: as set_env.sh, which is one folder up.
. "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]:-$0}")/.." && pwd)/set_env.sh"
