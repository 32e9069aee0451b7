import type { Knex } from 'knex'
import { type MailData, sendMailJob } from '../../jobs/definitions.js'
import { enqueueJobs } from '../../jobs/outbox/enqueue-jobs.js'
import type { AccountMailKind } from '../../persistence/mail/mail-kinds.js'
import { insertMails } from '../../persistence/mail/mails.js'
import type { Services } from '../../services/services.js'

export interface NewMail extends Omit<MailData, 'mailId'> {
  /** MAC of the mailbox, for mails to people without an account. */
  readonly mailbox?: Buffer
}

/** Enqueues mails in the transaction of their cause. Without a mail server there are none. */
export async function enqueueMails(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  mails: readonly NewMail[],
  due: { readonly dueInSeconds?: number } = {},
): Promise<void> {
  if (services.config.mail === undefined || mails.length === 0) return
  const ids = await insertMails(transaction, mails)
  await enqueueJobs(
    services,
    transaction,
    mails.map(({ mailbox: _, ...data }, index) => ({
      job: sendMailJob,
      data: { ...data, mailId: ids[index] },
      ...due,
    })),
  )
}

/** Enqueues a mail about an account to its confirmed address. */
export async function enqueueAccountMail(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  kind: AccountMailKind,
  userId: number,
): Promise<void> {
  await enqueueMails(services, transaction, [{ kind, userId }])
}
