import {
  type CountedCategory,
  countOwnData,
  type DataCategory,
  type DataOwner,
  listMailsOfUser,
} from '../../persistence/accounts/own-data.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { listAuthorizedClients } from './authorizations.js'
import { listPasskeys } from './factors/passkeys.js'
import { listSessions } from './sessions.js'
import { getSettings } from './settings.js'

export { DATA_CATEGORIES, type DataCategory } from '../../persistence/accounts/own-data.js'

/** Everything that the pod knows about a user: rows of some categories, and the numbers of all others. */
export interface OwnData {
  readonly counts: Readonly<Record<DataCategory, number>>
  readonly items: {
    readonly account: object
    readonly sessions: readonly object[]
    readonly applications: readonly object[]
    readonly mails: readonly object[]
  }
}

/** Reads the data about a user. It has no hash, no secret, and nothing of another person. */
export async function getOwnData(
  services: Pick<Services, 'config' | 'db' | 'locales'>,
  owner: DataOwner,
): Promise<OwnData> {
  const { db } = services
  const [counted, settings, user, passkeys, sessions, applications, mails] = await Promise.all([
    countOwnData(db, owner),
    getSettings(services, owner.userId),
    User.query(db).findById(owner.userId).throwIfNotFound(),
    listPasskeys(services, owner.userId),
    listSessions(services, owner.userId),
    listAuthorizedClients(services, owner.address),
    listMailsOfUser(db, owner.userId),
  ])
  const { address, username, guid } = owner
  const { createdAt, signedUpAt, signUpNetwork, lastSignInAt, activeAt, inactiveWarnedAt, role } = user
  const { termsVersion, termsAcceptedAt } = user
  return {
    counts: {
      ...(counted as Readonly<Record<CountedCategory, number>>),
      account: 1,
      sessions: sessions.length,
      applications: applications.length,
      mails: mails.length,
      backups: services.config.backupTo === undefined ? 0 : 1,
    },
    items: {
      account: {
        address,
        username,
        guid,
        role,
        createdAt,
        signedUpAt,
        signUpNetwork,
        lastSignInAt,
        activeAt,
        inactiveWarnedAt,
        termsVersion,
        termsAcceptedAt,
        settings,
        passkeys,
      },
      sessions: sessions.map(({ uid: _, ...session }) => session),
      applications,
      mails,
    },
  }
}
