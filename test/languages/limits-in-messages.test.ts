import { describe, expect, it } from 'vitest'
import { TOKEN_HOURS } from '../../src/domain/accounts/account-tokens.js'
import { FACTOR_LIMITS } from '../../src/domain/accounts/factors/limits.js'
import { ACCOUNT_LIMITS } from '../../src/domain/accounts/limits.js'
import { ARCHIVE_LIMITS } from '../../src/domain/archives/limits.js'
import { TEXT_LIMITS } from '../../src/domain/limits.js'
import { MODERATION_LIMITS } from '../../src/domain/moderation/limits.js'
import { CATALOGUES } from '../../src/languages/locales.js'
import type { MessageId } from '../../src/languages/translate.js'

const { passwordCharacters, passwordBytes, tagsOfPerson } = TEXT_LIMITS

/** Messages that say a limit, with its numbers in order. */
const LIMITS = {
  'sign_up.password_hint': [passwordCharacters],
  'sign_up.password_hint_without_mail': [passwordCharacters],
  'sign_up.confirm': [ACCOUNT_LIMITS.unconfirmedDays],
  'link.new_password_hint': [passwordCharacters],
  'password.hint': [passwordCharacters],
  'refusal.password_invalid': [passwordCharacters, passwordBytes],
  'refusal.reason_invalid': [1, ACCOUNT_LIMITS.reasonCharacters],
  'refusal.invitations_too_early': [ACCOUNT_LIMITS.invitationsAfterDays],
  'refusal.passkey_name_invalid': [1, FACTOR_LIMITS.passkeyNameCharacters],
  'refusal.tags_invalid': [tagsOfPerson],
  'profile.tags': [tagsOfPerson],
  'mail.confirm_sign_up.text': [ACCOUNT_LIMITS.unconfirmedDays],
  'mail.password_reset.text': [TOKEN_HOURS.password_reset],
  'mail.email_changing.text': [TOKEN_HOURS.undo_email / 24],
  'mail.archive_ready.text': [ARCHIVE_LIMITS.exportDays],
  'export.about': [ARCHIVE_LIMITS.exportDays],
  'data.end_session': [ACCOUNT_LIMITS.knownBrowserDays],
} as const satisfies Partial<Readonly<Record<MessageId, readonly number[]>>>

describe.each(Object.entries(CATALOGUES))('the messages in %s', (_language, catalogue) => {
  it.each(Object.entries(LIMITS))('say the limit of %s as it is', (id, limits) => {
    expect([...(catalogue[id] ?? '').matchAll(/[0-9]+/g)].map(([digits]) => Number(digits))).toEqual(limits)
  })

  it('name the days for which an invitation is valid without a date', () => {
    expect(catalogue['invitations.until_label']).toContain(`${MODERATION_LIMITS.invitationDays} `)
  })
})
