import type { MailData } from '../../jobs/definitions.js'
import { type JobContext, postpone } from '../../jobs/outbox/load-job.js'
import { sweepAllNow } from '../../jobs/outbox/sweep-rows.js'
import { inRequestTransaction, inTransaction } from '../../persistence/database/transactions.js'
import { isAccountMail, isStaffMail } from '../../persistence/mail/mail-kinds.js'
import {
  countMailAttempt,
  deleteMail,
  findMailAttempts,
  recordMailboxFault,
  recordSentMail,
} from '../../persistence/mail/mails.js'
import {
  clearStaffMailComposed,
  recordDigest,
  recordStaffMailComposed,
} from '../../persistence/mail/notification-mails.js'
import {
  recordTransportFailure,
  recordTransportSuccess,
  returnSendingTurn,
  takeSendingTurn,
} from '../../persistence/mail/transport-state.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { linkLifetime } from './account-mails.js'
import { bounceAddress } from './bounces.js'
import { type ComposedMail, composeMail } from './compose-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { sendMessage } from './smtp/send-message.js'
import { readSmtpFault, type SmtpFault } from './smtp/smtp-faults.js'

type MailWork = JobContext & { readonly data: MailData }

/** The mail was not sent in all attempts. */
export class MailUnsent extends Error {
  override name = 'MailUnsent'
}

/** Sends one mail, or decides when its next attempt is. A mail may be sent twice: a worker may die before it records the first one. */
export async function sendMail(services: Services, work: MailWork): Promise<void> {
  const { data, outboxId } = work
  const settings = services.config.mail
  const attempts = await findMailAttempts(services.db, data.mailId)
  if (settings === undefined || attempts === undefined || outboxId === undefined) return
  if (attempts.age > lifetime(data)) throw new Refusal('mail_expired', 'The mail has expired.')
  const turn = await takeSendingTurn(services.db, {
    perMinute: settings.perMinute,
    probeSeconds: MAIL_LIMITS.probeSeconds,
  })
  if (!turn.mayTry) return await postpone(services.db, outboxId, turn.waitSeconds)

  if (isStaffMail(data.kind)) {
    await inTransaction(services.db, (transaction) => recordStaffMailComposed(transaction, data.mailId))
  }
  const mail = await composeMail(services, data)
  if (mail === undefined) {
    await returnSendingTurn(services.db)
    await inRequestTransaction(services, async (transaction) => {
      await work.finish(transaction)
      await deleteMail(transaction, data.mailId)
    })
    return
  }
  const thrown = await attempt(services, data, mail)
  if (thrown === undefined) return finishSent(services, work)
  const fault = readSmtpFault(thrown)
  services.log.info({ mail: data.mailId, kind: data.kind, code: fault.code, fault: fault.fault }, 'mail not sent')
  await handleFault(services, work, fault, attempts.attempts)
}

async function attempt({ config, secrets }: Services, data: MailData, mail: ComposedMail): Promise<unknown> {
  if (config.mail === undefined) return undefined
  const { to, subject, text, html, inReplyTo, unsubscribeUrl } = mail
  const host = new URL(config.url).hostname
  try {
    await sendMessage(config.mail, host, {
      to,
      subject,
      text,
      html,
      inReplyTo,
      unsubscribeUrl,
      messageId: `<mail-${data.mailId}@${host}>`,
      fromName: config.podName,
      bounceTo: data.userId === undefined ? undefined : bounceAddress({ config, secrets }, data.userId),
    })
    return undefined
  } catch (error) {
    return error ?? new Error('unknown')
  }
}

async function finishSent(services: Services, work: MailWork): Promise<void> {
  const { mailId, userId, kind } = work.data
  const isBack = await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    await recordSentMail(transaction, { id: mailId, userId })
    if (kind === 'digest' && userId !== undefined) await recordDigest(transaction, userId, mailId)
    return recordTransportSuccess(transaction)
  })
  services.log.info({ mail: mailId, kind }, 'mail sent')
  if (!isBack) return
  services.log.info('the mail server accepts mails again')
  await sweepAllNow(services.db, 'mail')
}

async function handleFault(services: Services, work: MailWork, fault: SmtpFault, attempts: number): Promise<void> {
  const { outboxId = 0, data } = work
  const { probeSeconds, retrySeconds } = MAIL_LIMITS
  if (isStaffMail(data.kind)) await clearStaffMailComposed(services.db, data.mailId)
  switch (fault.kind) {
    case 'operator': {
      const hasBegun = await recordTransportFailure(services.db, { ...fault, probeSeconds })
      if (hasBegun) services.log.warn({ fault: fault.fault, code: fault.code }, 'the mail server refuses this pod')
      return await postpone(services.db, outboxId, probeSeconds)
    }
    case 'temporary': {
      const seconds = retrySeconds[attempts]
      await countMailAttempt(services.db, data.mailId)
      if (seconds === undefined) throw new MailUnsent(fault.fault)
      return await postpone(services.db, outboxId, seconds)
    }
    case 'no_mailbox':
    case 'refused':
      await inRequestTransaction(services, async (transaction) => {
        await work.finish(transaction)
        if (data.userId === undefined || data.kind === 'confirm_email') return
        const { maxPermanentFaults: limit, faultDays: days } = MAIL_LIMITS
        await recordMailboxFault(transaction, data.userId, { isGone: fault.kind === 'no_mailbox', limit, days })
      })
  }
}

/** Seconds. */
function lifetime({ kind }: MailData): number {
  const lifetimeOfLink = isAccountMail(kind) ? linkLifetime(kind) : undefined
  return lifetimeOfLink ?? MAIL_LIMITS.waitingDays * 86_400
}
