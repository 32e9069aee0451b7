import type { Knex } from 'knex'
import { type MailData, sendMailJob } from '../../jobs/definitions.js'
import { enqueueJobs } from '../../jobs/outbox/outbox.js'
import type { AccountMailKind } from '../../persistence/mail/mail-kinds.js'
import { insertMails } from '../../persistence/mail/mails.js'
import type { Pod } from '../../pod/pod.js'

export interface NewMail extends Omit<MailData, 'mailId'> {
  /** MAC of the mailbox, for mails to people without an account. */
  readonly mailbox?: Buffer
}

/** Enqueues mails in the transaction of their cause. Without a mail server there are none. */
export async function enqueueMails(
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  mails: readonly NewMail[],
  due: { readonly dueInSeconds?: number } = {},
): Promise<void> {
  if (pod.config.mail === undefined || mails.length === 0) return
  const ids = await insertMails(transaction, mails)
  await enqueueJobs(
    pod,
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
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  kind: AccountMailKind,
  userId: number,
): Promise<void> {
  await enqueueMails(pod, transaction, [{ kind, userId }])
}
