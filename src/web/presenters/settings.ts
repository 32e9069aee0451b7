import type { Static } from 'typebox'
import type { AccountSettings } from '../../domain/accounts/settings.js'
import type { UserSettings } from '../schemas/settings.js'

/** `canShowEmail`: the token may read the address. */
export function presentSettings(
  settings: AccountSettings,
  { canShowEmail, isMailAvailable }: { readonly canShowEmail: boolean; readonly isMailAvailable: boolean },
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
    ...(canShowEmail && { email: settings.email, unconfirmed_email: settings.unconfirmedEmail }),
    email_confirmed: settings.emailConfirmed,
    mail_available: isMailAvailable,
    mail_state: settings.mailState,
    second_factor: {
      totp: secondFactor.totp,
      passkeys: secondFactor.passkeys,
      recovery_codes_left: secondFactor.recoveryCodesLeft,
    },
    close_at: settings.closeAt?.toISOString() ?? null,
  }
}
