import type { MailTexts, NoticeFacts } from './mail-texts.js'

const IGNORE = 'If this was not you, you need not do anything.'
const NOT_YOU =
  'If this was not you, reset your password and end all sessions in the settings, or ask the operator of the pod.'

function people({ name, others }: NoticeFacts): string {
  if (others === 0) return name
  return others === 1 ? `${name} and one other person` : `${name} and ${others} other people`
}

function notice(sentence: (who: string) => string) {
  return (facts: NoticeFacts) => {
    const text = sentence(people(facts))
    const excerpt = facts.excerpt === undefined ? [] : [facts.excerpt]
    return { subject: text, paragraphs: [`${text}.`, ...excerpt], action: 'Open it' }
  }
}

const sentences = {
  mentioned: (who: string) => `${who} mentioned you in a post`,
  mentioned_in_comment: (who: string) => `${who} mentioned you in a comment`,
  started_sharing: (who: string) => `${who} started sharing with you`,
  private_message: (who: string) => `${who} sent you a message`,
  comment_on_post: (who: string) => `${who} commented on your post`,
  also_commented: (who: string) => `${who} commented on a post you commented on`,
  liked: (who: string) => `${who} liked your post`,
  liked_comment: (who: string) => `${who} liked your comment`,
  reshared: (who: string) => `${who} reshared your post`,
  contacts_birthday: (who: string) => `${who} has birthday`,
} as const

const line = (sentence: (who: string) => string) => (facts: NoticeFacts) => `${sentence(people(facts))}.`

export const ENGLISH: MailTexts = {
  account: {
    confirm_sign_up: ({ pod, account }) => ({
      subject: `Confirm your e-mail address for ${pod}`,
      paragraphs: [
        `Somebody, probably you, wants to open the account ${account} on ${pod} with this e-mail address.`,
        `To confirm the address, open this page and press its button within three days. ${IGNORE}`,
      ],
      action: 'Confirm the address',
    }),
    already_registered: ({ pod }) => ({
      subject: `You already have an account on ${pod}`,
      paragraphs: [
        `Somebody, probably you, wanted to open an account on ${pod} with this e-mail address. There is an account with it already: sign in with its name, or with this address.`,
        IGNORE,
      ],
    }),
    sign_up_approved: ({ pod, account }) => ({
      subject: `Your account on ${pod} is open`,
      paragraphs: [`The account ${account} is open. You can sign in now.`],
      action: 'Sign in',
    }),
    sign_up_rejected: ({ pod, note }) => ({
      subject: `Your sign-up on ${pod}`,
      paragraphs: [
        `The moderators of ${pod} have not accepted your sign-up. Your data has been deleted.`,
        ...(note === undefined ? [] : [note]),
      ],
    }),
    password_reset: ({ pod, account }) => ({
      subject: `Reset your password for ${pod}`,
      paragraphs: [
        `A new password was requested for ${account}, probably by you.`,
        `To set one, open this page within two hours. ${IGNORE}`,
      ],
      action: 'Set a new password',
    }),
    password_changed: ({ pod, account }) => ({
      subject: `The password of your account on ${pod} has changed`,
      paragraphs: [`The password of ${account} was changed.`, NOT_YOU],
    }),
    confirm_email: ({ pod, account }) => ({
      subject: `Confirm your new e-mail address for ${pod}`,
      paragraphs: [
        `This becomes the e-mail address of ${account} on ${pod}.`,
        `To confirm it, open this page and press its button within a day. ${IGNORE}`,
      ],
      action: 'Confirm the address',
    }),
    email_changing: ({ pod, account, address = '' }) => ({
      subject: `The e-mail address of your account on ${pod} is being changed`,
      paragraphs: [
        `The account ${account} is to have the e-mail address ${address} instead of this one.`,
        'If this was not you, open this page within three days: this address is restored, all sessions end, and you set a new password.',
      ],
      action: 'Undo the change',
    }),
    new_sign_in: ({ pod, account }) => ({
      subject: `New sign-in on ${pod}`,
      paragraphs: [`A browser that was not used before has signed in as ${account}.`, NOT_YOU],
    }),
    second_factor_on: ({ pod, account }) => ({
      subject: `Two-factor authentication is on for ${pod}`,
      paragraphs: [`Signing in as ${account} needs a code from now on.`, NOT_YOU],
    }),
    second_factor_off: ({ pod, account }) => ({
      subject: `Two-factor authentication is off for ${pod}`,
      paragraphs: [`Signing in as ${account} needs no code any more.`, NOT_YOU],
    }),
    recovery_codes_new: ({ pod, account }) => ({
      subject: `New recovery codes for ${pod}`,
      paragraphs: [`New recovery codes were made for ${account}. The old ones are not valid any more.`, NOT_YOU],
    }),
    recovery_code_used: ({ pod, account, count = 0 }) => ({
      subject: `A recovery code was used on ${pod}`,
      paragraphs: [`A recovery code of ${account} was used to sign in. Recovery codes that remain: ${count}.`, NOT_YOU],
    }),
    passkey_added: ({ pod, account }) => ({
      subject: `A passkey was added on ${pod}`,
      paragraphs: [`A passkey can now be used to sign in as ${account}.`, NOT_YOU],
    }),
    passkey_removed: ({ pod, account }) => ({
      subject: `A passkey was removed on ${pod}`,
      paragraphs: [`A passkey of ${account} was removed.`, NOT_YOU],
    }),
    moderation_notice: ({ pod, account }) => ({
      subject: `A notice from the moderators of ${pod}`,
      paragraphs: [`The moderators of ${pod} have a notice for ${account}. Sign in to read it.`],
      action: 'Read the notice',
    }),
    passkey_refused: ({ pod, account }) => ({
      subject: `A passkey was refused on ${pod}`,
      paragraphs: [`A passkey of ${account} was refused, because it may have been copied. Remove it in the settings.`],
    }),
    account_closing: ({ pod, account, day = '' }) => ({
      subject: `Your account on ${pod} is being closed`,
      paragraphs: [
        `The account ${account} is closed for good on ${day}. Until then nothing is deleted: to keep the account, sign in.`,
        NOT_YOU,
      ],
      action: 'Keep the account',
    }),
    archive_ready: ({ pod, account }) => ({
      subject: `Your export from ${pod} is ready`,
      paragraphs: [`The export of ${account} is ready. It is kept for 14 days.`, NOT_YOU],
      action: 'Download it',
    }),
    archive_downloaded: ({ pod, account }) => ({
      subject: `An export of your account on ${pod} was downloaded`,
      paragraphs: [`An export of ${account} was downloaded. Whoever has the file can read what is in it.`, NOT_YOU],
    }),
  },
  notice: {
    mentioned: notice(sentences.mentioned),
    mentioned_in_comment: notice(sentences.mentioned_in_comment),
    started_sharing: notice(sentences.started_sharing),
    private_message: notice(sentences.private_message),
    comment_on_post: notice(sentences.comment_on_post),
    also_commented: notice(sentences.also_commented),
    liked: notice(sentences.liked),
    liked_comment: notice(sentences.liked_comment),
    reshared: notice(sentences.reshared),
    contacts_birthday: notice(sentences.contacts_birthday),
  },
  staff: {
    someone_reported: ({ pod, count }) => ({
      subject: count === 1 ? `A new report on ${pod}` : `${count} new reports on ${pod}`,
      paragraphs: [count === 1 ? 'A new report waits for moderators.' : `${count} new reports wait for moderators.`],
      action: 'Open the reports',
    }),
    sign_up_waiting: ({ pod, count }) => ({
      subject: count === 1 ? `A sign-up waits on ${pod}` : `${count} sign-ups wait on ${pod}`,
      paragraphs: [count === 1 ? 'A sign-up waits for a decision.' : `${count} sign-ups wait for a decision.`],
      action: 'Open the sign-ups',
    }),
  },
  digestLine: {
    mentioned: line(sentences.mentioned),
    mentioned_in_comment: line(sentences.mentioned_in_comment),
    started_sharing: line(sentences.started_sharing),
    private_message: line(sentences.private_message),
    comment_on_post: line(sentences.comment_on_post),
    also_commented: line(sentences.also_commented),
    liked: line(sentences.liked),
    liked_comment: line(sentences.liked_comment),
    reshared: line(sentences.reshared),
    contacts_birthday: line(sentences.contacts_birthday),
  },
  digest: ({ pod, count, more }) => ({
    subject: count === 1 ? `One new notification on ${pod}` : `${count} new notifications on ${pod}`,
    intro: 'What you have not read since the last summary:',
    more: more === 0 ? '' : `${more} more`,
    action: 'Open your notifications',
  }),
  accountFooter: (pod) => `${pod} sends this mail because it is about an account with this e-mail address.`,
  noticeFooter: (pod) => `${pod} sends this notice because you have not switched it off.`,
  unsubscribe: 'Stop these notices',
}
