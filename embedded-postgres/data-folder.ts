import { access, chmod, constants, readdir, stat } from 'node:fs/promises'
import { makeFolder } from '../src/config/make-folder.js'
import { messageOf } from '../src/errors/thrown.js'
import { EmbeddedPostgresError } from './errors.js'
import { isRoot } from './run-as.js'

/** Files of the pod in the data folder; each has a restrictive mode of its own. */
const KEPT_HERE = /^(postgres|secret-key|uploads|address\.json)/

/** Makes the data folder with mode 0700; as root 0711, because the database runs as another user who must traverse it. */
export async function makeDataFolder(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir, isRoot() ? 0o711 : 0o700)
    await access(dataDir, constants.W_OK | constants.X_OK)
    if (isRoot()) await letThrough(dataDir)
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `The data folder ${dataDir} cannot be used (${messageOf(cause)}): make it a folder that this user may write to, or set another DATA_DIR.`,
      { cause },
    )
  }
}

/** Opens only folders that contain nothing but pod files: DATA_DIR may be any folder, even root's home. */
async function letThrough(dataDir: string): Promise<void> {
  const { mode, uid } = await stat(dataDir)
  if (uid !== 0 || (mode & 0o001) !== 0) return
  const names = await readdir(dataDir)
  if (names.every((name) => KEPT_HERE.test(name))) await chmod(dataDir, (mode & 0o777) | 0o011)
}
