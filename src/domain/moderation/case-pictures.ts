import { previewPictureJob } from '../../jobs/definitions.js'
import { enqueueJob } from '../../jobs/outbox/outbox.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import {
  type CasePictureState,
  findCasePictureState,
  type PictureLook,
  readCasePicture,
  requestCasePicture,
} from '../../persistence/moderation/case-pictures.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'
import type { Actor } from './actor.js'
import { caseEntry, findWholeCase, type WholeCase } from './cases.js'
import { auditContext } from './record-action.js'

interface PictureOfCase {
  readonly caseId: number
  readonly photoGuid: string
}

/**
 * Has a picture of a reported post fetched and made again by a worker, so that the browser of a moderator loads nothing from another pod,
 * and no file as it was uploaded. The request is recorded in the audit log. The copies are kept for a day.
 */
export async function requestPictureOfCase(
  pod: Pick<Pod, 'db' | 'jobs' | 'now' | 'requestContext'>,
  actor: Actor,
  picture: PictureOfCase,
): Promise<void> {
  const caseOfPicture = await requirePictureOfCase(pod, actor, picture)
  await inTransaction(pod, async (transaction) => {
    const { photoGuid } = picture
    if (!(await requestCasePicture(transaction, photoGuid, pod.now()))) return
    await enqueueJob(pod, transaction, previewPictureJob, { photoGuid })
    const entry = {
      ...auditContext(actor),
      ...caseEntry(caseOfPicture, 'case.picture_shown'),
      after: { photo: photoGuid },
    }
    await appendAuditEntry(transaction, entry, pod.now())
  })
}

/** Undefined: it was not requested in the last day. */
export async function findStateOfCasePicture(
  pod: Pick<Pod, 'db'>,
  actor: Actor,
  picture: PictureOfCase,
): Promise<CasePictureState | undefined> {
  await requirePictureOfCase(pod, actor, picture)
  return findCasePictureState(pod.db, picture.photoGuid)
}

export async function readPictureOfCase(
  pod: Pick<Pod, 'db'>,
  actor: Actor,
  picture: PictureOfCase,
  look: PictureLook,
): Promise<Buffer> {
  await requirePictureOfCase(pod, actor, picture)
  const bytes = await readCasePicture(pod.db, picture.photoGuid, look)
  if (bytes === undefined) throw pictureNotFound()
  return bytes
}

async function requirePictureOfCase(
  pod: Pick<Pod, 'db'>,
  actor: Actor,
  { caseId, photoGuid }: PictureOfCase,
): Promise<WholeCase> {
  const moderationCase = await findWholeCase(pod, actor, caseId)
  if (!moderationCase.photoGuids.includes(photoGuid)) throw pictureNotFound()
  return moderationCase
}

function pictureNotFound(): Refusal {
  return new Refusal('picture_not_found', 'The case has no such picture.')
}
