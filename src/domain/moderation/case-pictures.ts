import { previewPictureJob } from '../../jobs/definitions.js'
import { enqueueJob } from '../../jobs/outbox/enqueue-jobs.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import {
  type CasePictureState,
  findCasePictureState,
  type PictureVariant,
  readCasePicture,
  requestCasePicture,
} from '../../persistence/moderation/case-pictures.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import type { Actor } from './actor.js'
import { caseEntry, type ListedCase, requireListedCase } from './cases.js'
import { auditContext } from './record-action.js'

interface PictureOfCase {
  readonly caseId: number
  readonly photoGuid: string
}

/**
 * Requests a copy of a picture of a reported post. A worker fetches and re-encodes it, so that the browser of a moderator loads nothing
 * from another pod, and no file as it was uploaded. The request is recorded in the audit log. The copies are kept for a day.
 */
export async function requestPictureOfCase(
  services: Pick<Services, 'db' | 'requestContext' | 'jobs' | 'now'>,
  actor: Actor,
  picture: PictureOfCase,
): Promise<void> {
  const caseOfPicture = await requirePictureOfCase(services, actor, picture)
  await inRequestTransaction(services, async (transaction) => {
    const { photoGuid } = picture
    if (!(await requestCasePicture(transaction, photoGuid, services.now()))) return
    await enqueueJob(services, transaction, previewPictureJob, { photoGuid })
    const entry = {
      ...auditContext(actor),
      ...caseEntry(caseOfPicture, 'case.picture_shown'),
      after: { photo: photoGuid },
    }
    await appendAuditEntry(transaction, entry, services.now())
  })
}

/** Undefined: it was not requested in the last day. */
export async function findStateOfCasePicture(
  services: Pick<Services, 'db'>,
  actor: Actor,
  picture: PictureOfCase,
): Promise<CasePictureState | undefined> {
  await requirePictureOfCase(services, actor, picture)
  return findCasePictureState(services.db, picture.photoGuid)
}

export async function readPictureOfCase(
  services: Pick<Services, 'db'>,
  actor: Actor,
  picture: PictureOfCase,
  variant: PictureVariant,
): Promise<Buffer> {
  await requirePictureOfCase(services, actor, picture)
  const bytes = await readCasePicture(services.db, picture.photoGuid, variant)
  if (bytes === undefined) throw pictureNotFound()
  return bytes
}

async function requirePictureOfCase(
  services: Pick<Services, 'db'>,
  actor: Actor,
  { caseId, photoGuid }: PictureOfCase,
): Promise<ListedCase> {
  const moderationCase = await requireListedCase(services, actor, caseId)
  if (!moderationCase.photoGuids.includes(photoGuid)) throw pictureNotFound()
  return moderationCase
}

function pictureNotFound(): Refusal {
  return new Refusal('picture_not_found', 'The case has no such picture.')
}
