import type { Static } from 'typebox'
import type { AccountSettings } from '../../domain/accounts/settings.js'
import type { UserSettings } from '../schemas/settings.js'

/** `showsEmail`: the token may read the address. */
export function presentSettings(
  settings: AccountSettings,
  { showsEmail, mailAvailable }: { readonly showsEmail: boolean; readonly mailAvailable: boolean },
): Static<typeof UserSettings> {
  const { mail, secondFactor } = settings
  return {
    language: settings.language,
    available_languages: [...settings.availableLanguages],
    time_zone: settings.timeZone,
    follow_back_aspect_id: settings.followBackAspectId,
    default_post_public: settings.defaultPostPublic,
    default_post_aspect_ids: [...settings.defaultPostAspectIds],
    strip_exif: true,
    mail_enabled: mail.enabled,
    mail_kinds: { ...mail.kinds },
    digest_hour: mail.digestHour,
    ...(showsEmail && { email: settings.email, unconfirmed_email: settings.unconfirmedEmail }),
    email_confirmed: settings.emailConfirmed,
    mail_available: mailAvailable,
    mail_state: settings.mailState,
    second_factor: {
      totp: secondFactor.totp,
      passkeys: secondFactor.passkeys,
      recovery_codes_left: secondFactor.recoveryCodesLeft,
    },
    close_at: settings.closeAt?.toISOString() ?? null,
  }
}
