import { access, chmod, constants, readdir, stat } from 'node:fs/promises'
import { makeFolder } from '../src/config/make-folder.js'
import { messageOf } from '../src/errors/thrown.js'
import { EmbeddedPostgresError } from './errors.js'
import { isRoot } from './run-as.js'

/** Whatever the pod keeps in its data folder guards itself by its own mode. */
const KEPT_HERE = /^(postgres|secret-key|uploads|address\.json)/

/** Closed to everybody else; root, whose database runs as another user, lets that user walk through, but not look around. */
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

/** Only a folder that is nothing but a pod's: DATA_DIR may be set to any folder, root's home included. */
async function letThrough(dataDir: string): Promise<void> {
  const { mode, uid } = await stat(dataDir)
  if (uid !== 0 || (mode & 0o001) !== 0) return
  const names = await readdir(dataDir)
  if (names.every((name) => KEPT_HERE.test(name))) await chmod(dataDir, (mode & 0o777) | 0o011)
}
