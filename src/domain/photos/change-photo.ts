import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Photo } from '../../persistence/models/photo.js'
import { deleteCreations } from '../../persistence/outbound/delete-messages.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'
import { readAltText } from './photos.js'

/** Changes the description of a photo of the viewer's own, on all pods that have it; null removes it. */
export async function changeAltText(
  services: Services,
  viewer: Viewer,
  { guid, altText }: { readonly guid: string; readonly altText: string | null },
): Promise<void> {
  const text = readAltText(altText)
  await inRequestTransaction(services, async (transaction) => {
    // Locked: at this moment a post may take the photo, and then this change has to follow the post.
    const photo = await Photo.query(transaction).findOne({ guid, authorId: viewer.personId }).forUpdate()
    if (!photo || !(photo.public || photo.pending || viewer.scopes.has('private:modify'))) {
      throw new Refusal('photo_not_found', 'You have no photo with this guid.')
    }
    if (photo.text === text) return
    await photo.$query(transaction).patch({ text })
    if (photo.pending) return
    // An undelivered message with the former text would keep the new one from being sent.
    await deleteCreations(transaction, [{ record: 'photo', guid }])
    await enqueueJobs(services, transaction, [newDispatchJob(photo.authorId, { record: 'photo', guid })])
  })
}
