import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { listNotifications } from '../../../src/domain/notifications/notifications.js'
import type { OutgoingRecord } from '../../../src/jobs/definitions.js'
import { Participation } from '../../../src/persistence/models/participation.js'
import type { Person } from '../../../src/persistence/models/person.js'
import type { Post } from '../../../src/persistence/models/post.js'
import type { Services } from '../../../src/services/services.js'
import { viewerOf } from '../people/local-users.js'
import { addRemotePerson } from '../people/remote-people.js'
import { buildPod } from './build-pod.js'

/** A pod with three local users and a known person of another pod. Their jobs are not processed. */
export interface DomainPod {
  readonly pod: Services
  readonly ann: Viewer
  readonly ben: Viewer
  readonly cem: Viewer
  readonly quin: Person
  /** Records for delivery to other pods since the last call, in order. */
  dispatched(): Promise<readonly OutgoingRecord[]>
  /** Notifications of a user, newest first: type and actors. */
  notificationsOf(viewer: Viewer): Promise<readonly (readonly string[])[]>
  participationsOf(post: Pick<Post, 'id'>): Promise<readonly Pick<Participation, 'guid' | 'authorId' | 'count'>[]>
  close(): Promise<void>
}

export async function openDomainPod(): Promise<DomainPod> {
  const { pod, people, close } = await buildPod()
  const { ann, ben, cem } = await people('ann', 'ben', 'cem')
  return {
    pod,
    ann: await viewerOf(pod, ann),
    ben: await viewerOf(pod, ben),
    cem: await viewerOf(pod, cem),
    quin: await addRemotePerson(pod, 'quin@q.example'),
    async dispatched() {
      const rows = await pod.db('outbox').where({ name: 'dispatch' }).delete().returning(['id', 'data'])
      return rows.toSorted((one, other) => one.id - other.id).map(({ data }) => data)
    },
    async notificationsOf(viewer) {
      const { items: notifications } = await listNotifications(pod, viewer, { limit: 100 })
      return notifications.map(({ type, actors }) => [type, ...actors.map(({ address }) => address)])
    },
    async participationsOf({ id: postId }) {
      return Participation.query(pod.db).where({ postId }).orderBy('id').select('guid', 'authorId', 'count')
    },
    close,
  }
}
