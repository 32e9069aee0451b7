/** Mails. Paragraphs are separated by an empty line. */
export const MAILS = {
  'mail.confirm_sign_up.subject': 'Confirm your e-mail address for {pod}',
  'mail.confirm_sign_up.text':
    'Someone, probably you, wants to open the account {account} on {pod} with this e-mail address.\n\nTo confirm the address, open this page and press its button within 3 days. If this was not you, you need not do anything.',
  'mail.confirm_sign_up.action': 'Confirm the address',
  'mail.already_registered.subject': 'You already have an account on {pod}',
  'mail.already_registered.text':
    'Someone, probably you, wanted to open an account on {pod} with this e-mail address. An account with this address exists already: sign in with its name, or with this address.\n\nIf this was not you, you need not do anything.',
  'mail.sign_up_approved.subject': 'Your account on {pod} is open',
  'mail.sign_up_approved.text': 'The account {account} is open. You can sign in now.',
  'mail.sign_up_rejected.subject': 'Your sign-up on {pod}',
  'mail.sign_up_rejected.text': 'The moderators of {pod} have not accepted your sign-up. Your data has been deleted.',
  'mail.password_reset.subject': 'Reset your password for {pod}',
  'mail.password_reset.text':
    'A new password was requested for {account}, probably by you.\n\nTo set one, open this page within 2 hours. If this was not you, you need not do anything.',
  'mail.password_reset.action': 'Set a new password',
  'mail.password_changed.subject': 'The password of your account on {pod} has changed',
  'mail.password_changed.text':
    'The password of {account} was changed.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.confirm_email.subject': 'Confirm your new e-mail address for {pod}',
  'mail.confirm_email.text':
    'This address will become the e-mail address of {account} on {pod}.\n\nTo confirm it, open this page and press its button within a day. If this was not you, you need not do anything.',
  'mail.confirm_email.action': 'Confirm the address',
  'mail.email_changing.subject': 'The e-mail address of your account on {pod} is being changed',
  'mail.email_changing.text':
    'The e-mail address of {account} is being changed from this one to {address}.\n\nIf this was not you, open this page within 3 days: this address is restored, all sessions end, and you set a new password.',
  'mail.email_changing.action': 'Undo the change',
  'mail.new_sign_in.subject': 'New sign-in on {pod}',
  'mail.new_sign_in.text':
    'Someone signed in as {account} with a browser that was not used before.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.second_factor_on.subject': 'The second factor is on for {pod}',
  'mail.second_factor_on.text':
    'Signing in as {account} needs a code from now on.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.second_factor_off.subject': 'The second factor is off for {pod}',
  'mail.second_factor_off.text':
    'Signing in as {account} no longer needs a code.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.recovery_codes_new.subject': 'New recovery codes for {pod}',
  'mail.recovery_codes_new.text':
    'New recovery codes were made for {account}. The old codes are no longer valid.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.recovery_code_used.subject': 'A recovery code was used on {pod}',
  'mail.recovery_code_used.text':
    'A recovery code of {account} was used to sign in. Remaining recovery codes: {count, number}.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.passkey_added.subject': 'A passkey was added on {pod}',
  'mail.passkey_added.text':
    'A passkey can now be used to sign in as {account}.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.passkey_removed.subject': 'A passkey was removed on {pod}',
  'mail.passkey_removed.text':
    'A passkey of {account} was removed.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.passkey_refused.subject': 'A passkey was refused on {pod}',
  'mail.passkey_refused.text':
    'A passkey of {account} was refused, because it may have been copied. Remove it in the settings.',
  'mail.sign_ups_unattended.subject': 'Sign-ups on {pod} need a decision now',
  'mail.sign_ups_unattended.text':
    'No moderator or admin of {pod} has been active for some time. From now on, each sign-up without an invitation requires approval, until an admin ends this.',
  'mail.sign_ups_unattended.action': 'Open the sign-ups',
  'mail.moderation_notice.subject': 'A notice from the moderators of {pod}',
  'mail.moderation_notice.text': 'The moderators of {pod} have a notice for {account}. Sign in to read it.',
  'mail.moderation_notice.action': 'Read the notice',

  'mail.account_closing.subject': 'Your account on {pod} is being closed',
  'mail.account_closing.text':
    'The account {account} will be closed permanently on {day}. Until then nothing is deleted. To keep the account, sign in before that day.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.account_closing.action': 'Keep the account',
  'mail.account_unused.subject': 'Your account on {pod} will be closed',
  'mail.account_unused.text':
    'The account {account} has not been used for a long time. If the account is not used by {day}, it will be closed.\n\nSign in, or use an app, to keep it.',
  'mail.account_unused.action': 'Sign in',
  'mail.account_unused_closing.subject': 'Your account on {pod} is being closed',
  'mail.account_unused_closing.text':
    'The account {account} has not been used for a long time and will be closed permanently on {day}. Until then nothing is deleted.\n\nTo keep the account, sign in before that day.',
  'mail.account_unused_closing.action': 'Keep the account',
  'mail.account_moved.subject': 'Your account on {pod} has moved',
  'mail.account_moved.text':
    'The account {account} has moved to {address}, with its posts, contacts and messages. It can no longer be used here.\n\nIf this was not you, someone has an export of your account. Ask the operator of the pod for help, and tell your contacts: a move cannot be undone.',
  'mail.archive_ready.subject': 'Your export from {pod} is ready',
  'mail.archive_ready.text':
    'The export of {account} is ready. It is kept for 14 days.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.archive_ready.action': 'Download it',
  'mail.archive_downloaded.subject': 'An export of your account on {pod} was downloaded',
  'mail.archive_downloaded.text':
    'An export of {account} was downloaded. Anyone with the file can read its content.\n\nIf this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.',
  'mail.notice.mentioned':
    '{others, plural, =0 {{name} mentioned you in a post} one {{name} and one other person mentioned you in a post} other {{name} and # other people mentioned you in a post}}',
  'mail.notice.mentioned_in_comment':
    '{others, plural, =0 {{name} mentioned you in a comment} one {{name} and one other person mentioned you in a comment} other {{name} and # other people mentioned you in a comment}}',
  'mail.notice.started_sharing':
    '{others, plural, =0 {{name} started sharing with you} one {{name} and one other person started sharing with you} other {{name} and # other people started sharing with you}}',
  'mail.notice.private_message':
    '{others, plural, =0 {{name} sent you a message} one {{name} and one other person sent you a message} other {{name} and # other people sent you a message}}',
  'mail.notice.comment_on_post':
    '{others, plural, =0 {{name} commented on your post} one {{name} and one other person commented on your post} other {{name} and # other people commented on your post}}',
  'mail.notice.also_commented':
    '{others, plural, =0 {{name} commented on a post you commented on} one {{name} and one other person commented on a post you commented on} other {{name} and # other people commented on a post you commented on}}',
  'mail.notice.liked':
    '{others, plural, =0 {{name} liked your post} one {{name} and one other person liked your post} other {{name} and # other people liked your post}}',
  'mail.notice.liked_comment':
    '{others, plural, =0 {{name} liked your comment} one {{name} and one other person liked your comment} other {{name} and # other people liked your comment}}',
  'mail.notice.reshared':
    '{others, plural, =0 {{name} reshared your post} one {{name} and one other person reshared your post} other {{name} and # other people reshared your post}}',
  'mail.notice.contacts_birthday':
    '{others, plural, =0 {It is the birthday of {name}} one {It is the birthday of {name} and one other person} other {It is the birthday of {name} and # other people}}',
  'mail.notice.sentence': '{sentence}.',
  'mail.notice.action': 'Open it',

  'mail.someone_reported.subject': '{count, plural, one {A new report on {pod}} other {# new reports on {pod}}}',
  'mail.someone_reported.text':
    '{count, plural, one {A new report waits for moderators.} other {# new reports wait for moderators.}}',
  'mail.someone_reported.action': 'Open the reports',
  'mail.reported.post': 'Posts: {count}',
  'mail.reported.comment': 'Comments: {count}',
  'mail.reported.person': 'People: {count}',
  'mail.reported.message': 'Messages: {count}',
  'mail.reported.cluster': 'Spam clusters: {count}',
  'mail.sign_up_waiting.subject': '{count, plural, one {A sign-up waits on {pod}} other {# sign-ups wait on {pod}}}',
  'mail.sign_up_waiting.text':
    '{count, plural, one {A sign-up waits for a decision.} other {# sign-ups wait for a decision.}}',
  'mail.sign_up_waiting.action': 'Open the sign-ups',

  'mail.digest.subject': '{count, plural, one {One new notification on {pod}} other {# new notifications on {pod}}}',
  'mail.digest.text': 'Unread notifications since the last summary:',
  'mail.digest.more': '{count, plural, one {# more} other {# more}}',
  'mail.digest.action': 'Open your notifications',
  'mail.account_footer': '{pod} sends this mail because it is about an account with this e-mail address.',
  'mail.notice_footer': '{pod} sends this mail because you have not switched off notification mails of this kind.',
  'mail.unsubscribe': 'Stop these mails',
} as const
