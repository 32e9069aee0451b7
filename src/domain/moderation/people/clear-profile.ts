import { enqueueJobs, newDispatchJob } from '../../../jobs/outbox/enqueue-jobs.js'
import { Person, Profile } from '../../../persistence/models/person.js'
import type { ModerationServices } from '../../../services/services.js'
import type { Actor } from '../actor.js'
import { type ActionOptions, type ActionOutcome, recordAction } from '../record-action.js'
import { withLockedUser } from '../restrict-user.js'

const EMPTY = {
  firstName: null,
  lastName: null,
  imageUrl: null,
  imageUrlMedium: null,
  imageUrlSmall: null,
  bio: '',
  location: '',
  gender: null,
  tags: [],
}

function isCleared(profile: Profile): boolean {
  const { firstName, lastName, imageUrl, imageUrlMedium, imageUrlSmall, bio, location, gender, tags } = profile
  const texts = [firstName, lastName, imageUrl, imageUrlMedium, imageUrlSmall, bio, location, gender]
  return tags.length === 0 && texts.every((text) => (text ?? '') === '')
}

/** Removes the picture and all texts of a local profile, and sends the profile to other pods. */
export async function clearProfile(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: Omit<ActionOptions, 'until'>,
): Promise<ActionOutcome> {
  return withLockedUser(services, actor, { guid, ...options }, async ({ transaction, user, reason }) => {
    const { personId } = user
    await Person.lock(transaction, personId)
    if (isCleared(await Profile.query(transaction).findOne({ personId }).throwIfNotFound())) return { changed: false }
    await Person.updateProfile(transaction, personId, { ...EMPTY, updatedAt: services.now() })
    await enqueueJobs(services, transaction, [newDispatchJob(personId, { record: 'profile', personId })])
    const action = await recordAction(services, transaction, actor, {
      kind: 'clear_profile',
      target: { type: 'person', guid, label: user.username },
      reason,
      caseId: options.caseId,
      undo: { possible: false },
    })
    return { changed: true, action }
  })
}
