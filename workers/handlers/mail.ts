import { startPasswordReset } from '../../src/domain/accounts/passwords/password-reset.js'
import { enqueueNotificationMails } from '../../src/domain/mail/notification-mails.js'
import { MailUnsent, sendMail } from '../../src/domain/mail/send-mail.js'
import type { notificationMailsJob, resetPasswordJob, sendMailJob } from '../../src/jobs/definitions.js'
import { FailedJob } from '../failed-job.js'
import type { JobHandlers } from './job-handlers.js'

export const mailHandlers: JobHandlers<typeof sendMailJob | typeof resetPasswordJob | typeof notificationMailsJob> = {
  'enqueue-notices': (services, work) => enqueueNotificationMails(services, work),
  'reset-password': (services, work) => startPasswordReset(services, work),

  async 'send-mail'(services, work) {
    try {
      await sendMail(services, work)
    } catch (error) {
      throw error instanceof MailUnsent ? new FailedJob('mail_unsent', 'dead', error) : error
    }
  },
}
