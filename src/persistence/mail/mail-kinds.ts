/** Mails about an account, which cannot be switched off. */
export const ACCOUNT_MAIL_KINDS = [
  'confirm_sign_up',
  'already_registered',
  'sign_up_approved',
  'sign_up_rejected',
  'password_reset',
  'password_changed',
  'confirm_email',
  'email_changing',
  'new_sign_in',
  'second_factor_on',
  'second_factor_off',
  'recovery_codes_new',
  'recovery_code_used',
  'passkey_added',
  'passkey_removed',
  'passkey_refused',
  'moderation_notice',
  'account_closing',
  'account_unused',
  'account_unused_closing',
  'account_moved',
  'archive_ready',
  'archive_downloaded',
  'sign_ups_unattended',
] as const

export type AccountMailKind = (typeof ACCOUNT_MAIL_KINDS)[number]

export const DELIVERIES = ['immediate', 'daily', 'never'] as const

export type MailDelivery = (typeof DELIVERIES)[number]

/** Notification mails by kind, with their delivery unless the user has chosen another. */
export const NOTIFICATION_MAIL_DELIVERY = {
  mentioned: 'immediate',
  mentioned_in_comment: 'immediate',
  started_sharing: 'immediate',
  private_message: 'immediate',
  comment_on_post: 'daily',
  also_commented: 'daily',
  liked: 'daily',
  liked_comment: 'daily',
  reshared: 'daily',
  contacts_birthday: 'daily',
} as const satisfies Readonly<Record<string, MailDelivery>>

export type NotificationMailKind = keyof typeof NOTIFICATION_MAIL_DELIVERY

/** Mails for moderators and admins. */
export const STAFF_MAIL_DELIVERY = {
  someone_reported: 'immediate',
  sign_up_waiting: 'immediate',
} as const satisfies Readonly<Record<string, MailDelivery>>

export type StaffMailKind = keyof typeof STAFF_MAIL_DELIVERY

export type MailKind = AccountMailKind | NotificationMailKind | StaffMailKind | 'digest'

/** All kinds whose delivery a user can choose. */
export const PREFERENCE_DEFAULTS: Readonly<Record<NotificationMailKind | StaffMailKind, MailDelivery>> = {
  ...NOTIFICATION_MAIL_DELIVERY,
  ...STAFF_MAIL_DELIVERY,
}

export function isPreferenceKind(text: string): text is NotificationMailKind | StaffMailKind {
  return Object.hasOwn(PREFERENCE_DEFAULTS, text)
}

export function isNotificationMailKind(text: string): text is NotificationMailKind {
  return Object.hasOwn(NOTIFICATION_MAIL_DELIVERY, text)
}

export function isStaffMail(kind: string): kind is StaffMailKind {
  return Object.hasOwn(STAFF_MAIL_DELIVERY, kind)
}

export function isAccountMail(kind: string): kind is AccountMailKind {
  return (ACCOUNT_MAIL_KINDS as readonly string[]).includes(kind)
}
