import type { Knex } from 'knex'
import { type SettingsChange, writeSettings } from '../../../domain/accounts/settings.js'
import { Refusal } from '../../../domain/refusals.js'
import { Aspect } from '../../../persistence/models/aspect.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { toWrittenFields } from '../../inbound/store/received-profile.js'
import { readProfile } from '../reading/archive-header.js'
import { readMembers } from '../reading/archive-owner.js'
import { readAspectName } from './aspect-names.js'
import { ensureAspects } from './import-aspects.js'
import type { ImportContext, ImportRejectionReason } from './import-context.js'

/** Changes the profile to that of the archive, if there is a valid one. Undefined: done. The profile travels with the migration, and is not sent by itself. */
export async function importProfile(
  { services, user }: ImportContext,
  transaction: Knex.Transaction,
  data: Readonly<Record<string, unknown>> | undefined,
): Promise<ImportRejectionReason | undefined> {
  const profile = data && readProfile({ ...data, author: user.address }, services.now())
  if (profile === undefined) return 'schema'
  await Person.lock(transaction, user.personId)
  await Person.updateProfile(transaction, user.personId, { ...toWrittenFields(profile), updatedAt: services.now() })
  return undefined
}

/** Language, following back and mails; never e-mail address, name, role or second factor. */
export async function importSettings(
  context: ImportContext,
  transaction: Knex.Transaction,
  header: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { services, user } = context
  const { language, auto_follow_back: follows } = header
  const name = followBackAspectName(context, header['auto_follow_back_aspect'])
  if (typeof language === 'string' && services.locales.languages.includes(language)) {
    await User.query(transaction).findById(user.userId).patch({ language })
  }
  if (follows === true && name !== undefined) {
    const aspects = await ensureAspects(context, transaction, [name])
    const followBackAspectId = aspects.get(name.toLowerCase()) ?? null
    await User.query(transaction).findById(user.userId).patch({ followBackAspectId })
  }
  const { disable_mail: isMailOff } = header
  if (typeof isMailOff === 'boolean') {
    await User.query(transaction).findById(user.userId).patch({ mailEnabled: !isMailOff })
  }
  await importOwnSettings(context, transaction, Object(header['settings']))
}

/** The settings that only archives of this software have. Each group is left as it is if a value of it is not accepted here. */
async function importOwnSettings(
  context: ImportContext,
  transaction: Knex.Transaction,
  settings: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { services, user } = context
  const { time_zone: timeZone, default_post_public: isPublic, default_post_aspects: names } = settings
  const { mail_enabled: enabled, mail_kinds: kinds, digest_hour: digestHour } = settings
  const aspects = await Aspect.query(transaction).where({ userId: user.userId })
  const aspectNames = new Set(namesOf(names).flatMap((name) => readAspectName(context, name)?.toLowerCase() ?? []))
  const isNamed = (name: string) => aspectNames.has(name.toLowerCase())
  const groups: readonly SettingsChange[] = [
    typeof timeZone === 'string' ? { timeZone } : {},
    typeof isPublic === 'boolean'
      ? {
          defaultPostPublic: isPublic,
          defaultPostAspectIds: isPublic ? [] : aspects.filter(({ name }) => isNamed(name)).map(({ id }) => id),
        }
      : {},
    {
      mail: {
        ...(typeof enabled === 'boolean' && { enabled }),
        ...(typeof digestHour === 'number' && { digestHour }),
        ...(readMembers(kinds) !== undefined && { kinds: textsOf(Object(kinds)) }),
      },
    },
  ]
  for (const group of groups) {
    try {
      await writeSettings({ db: transaction, locales: services.locales }, user.userId, group)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  }
}

function namesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textsOf(members: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, string] => typeof member[1] === 'string'),
  )
}

/** diaspora* writes the whole record of the aspect instead of its name. */
function followBackAspectName(context: ImportContext, value: unknown): string | undefined {
  return readAspectName(context, readMembers(value)?.['name'] ?? value)
}
