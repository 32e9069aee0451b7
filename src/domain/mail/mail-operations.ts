import { randomUUID } from 'node:crypto'
import { sweepAllNow } from '../../jobs/outbox/sweep-rows.js'
import { countMails, type MailCounts } from '../../persistence/mail/mail-counts.js'
import { endTransportPause, findTransportState } from '../../persistence/mail/transport-state.js'
import type { Services } from '../../services/services.js'
import type { Actor } from '../moderation/actor.js'
import { recordOperatorChange } from '../operations/record-operator-change.js'
import { Refusal } from '../refusals.js'
import { checkMailServer, type MailCheckStep } from './smtp/check-server.js'
import { writeMail } from './write-mail.js'

export interface MailStatus extends MailCounts {
  readonly configured: boolean
  readonly failingSince: Date | null
  readonly fault: string | null
  readonly code: number | null
  readonly nextProbe: Date | null
}

export async function findMailStatus({ db, config }: Pick<Services, 'config' | 'db'>): Promise<MailStatus> {
  const { failingSince, fault, code, probeAt } = await findTransportState(db)
  const counts = await countMails(db)
  return { configured: config.mail !== undefined, failingSince, fault, code, nextProbe: probeAt, ...counts }
}

/** Ends the pause after a refusal of the mail server: the next mail tries now, and with its success the others follow. */
export async function resumeMail(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
): Promise<void> {
  const target = { type: 'queue', label: 'mail' }
  await recordOperatorChange(services, actor, { action: 'mail.resume', target }, async (transaction) => {
    await endTransportPause(transaction)
    await sweepAllNow(transaction, 'mail')
    return { resumed: true }
  })
}

/** Sends a mail to an address, step by step. */
export async function testMail(
  { config }: Pick<Services, 'config'>,
  address: string,
): Promise<readonly MailCheckStep[]> {
  if (config.isolated) {
    throw new Refusal('mail_unavailable', 'This copy of the pod is isolated (ISOLATED): it sends no mail.')
  }
  if (config.mail === undefined) throw new Refusal('mail_unavailable', 'SMTP_URL is not set: the pod sends no mail.')
  const host = new URL(config.url).hostname
  const text = `This is a test mail of ${config.podName}.`
  const content = writeMail({ text: { subject: 'Test mail', paragraphs: [text] }, footer: config.podName })
  const messageId = `<test-${randomUUID()}@${host}>`
  const unused = { bounceTo: undefined, inReplyTo: undefined, unsubscribeUrl: undefined }
  return checkMailServer(config.mail, { ...content, ...unused, messageId, to: address, fromName: config.podName }, host)
}

/** Connects to the mail server and signs in, step by step. Without a mail server there is no step. */
export async function connectToMailServer({ config }: Pick<Services, 'config'>): Promise<readonly MailCheckStep[]> {
  return config.mail === undefined ? [] : checkMailServer(config.mail, undefined, new URL(config.url).hostname)
}
