import { Aspect } from '../../../src/persistence/models/aspect.js'
import { Contact } from '../../../src/persistence/models/contact.js'
import type { Person } from '../../../src/persistence/models/person.js'
import type { Services } from '../../../src/services/services.js'

/** A new aspect of the user with these people in it. */
export async function addAspect(pod: Services, userId: number, people: readonly Pick<Person, 'id'>[]): Promise<number> {
  const { id } = await Aspect.query(pod.db)
    .insert({ userId, name: `Aspect of ${people.map((person) => person.id).join(', ')}`, position: 9 })
    .returning('id')
  for (const person of people) {
    const contact = await Contact.query(pod.db)
      .insert({ userId, personId: person.id, receiving: true })
      .onConflict(['userId', 'personId'])
      .merge(['receiving'])
      .returning('id')
    await pod.db('aspectMemberships').insert({ aspectId: id, contactId: contact.id })
  }
  return id
}
