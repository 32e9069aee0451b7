import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { User, UserSecrets } from '../persistence/models/user.js'
import type { Pod } from '../pod.js'
import { ARGON2 } from './accounts.js'

/** What somebody typed as their name, as the pod knows it: the address works as well, where it is one of ours. */
export function usernameIn(pod: Pick<Pod, 'config'>, typed: string): string {
  const name = typed.trim().toLowerCase()
  return name.endsWith(`@${pod.config.host}`) ? name.slice(0, -pod.config.host.length - 1) : name
}

/** The address of whom the password lets in. A name nobody has, a closed and a locked account cost the same time as a wrong password. */
export async function signIn(
  pod: Pick<Pod, 'db' | 'now'>,
  username: string,
  password: string,
): Promise<string | undefined> {
  const user = await User.byUsername(pod.db, username)
  const secrets = user && (await UserSecrets.query(pod.db).findById(user.id))
  const isRight = await verify(secrets?.passwordHash ?? (await hashOfNobody()), password).catch(() => false)
  if (!isRight || !secrets?.passwordHash || !user?.person || user.closedAt || user.lockedAt) return undefined
  await user.$query(pod.db).patch({ lastSignInAt: pod.now() })
  return user.person.address
}

let ofNobody: Promise<string> | undefined

function hashOfNobody(): Promise<string> {
  ofNobody ??= hash(randomBytes(32).toString('hex'), ARGON2)
  return ofNobody
}
