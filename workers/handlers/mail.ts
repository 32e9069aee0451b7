import { startPasswordReset } from '../../src/domain/accounts/passwords/password-reset.js'
import { enqueueNotices } from '../../src/domain/mail/notices.js'
import { MailUnsent, sendMail } from '../../src/domain/mail/send-mail.js'
import type { Handlers, noticesJob, resetPasswordJob, sendMailJob } from '../../src/jobs/definitions.js'
import type { JobContext } from '../../src/jobs/outbox/outbox.js'
import type { Pod } from '../../src/pod/pod.js'
import { FailedJob } from '../failed-job.js'

export const mailHandlers: Handlers<typeof sendMailJob | typeof resetPasswordJob | typeof noticesJob, Pod, JobContext> =
  {
    'enqueue-notices': (pod, work) => enqueueNotices(pod, work),
    'reset-password': (pod, work) => startPasswordReset(pod, work),

    async 'send-mail'(pod, work) {
      try {
        await sendMail(pod, work)
      } catch (error) {
        throw error instanceof MailUnsent ? new FailedJob('mail_unsent', 'dead', error) : error
      }
    },
  }
