import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../../domain/moderation/actor.js'
import { getPersonState } from '../../../domain/moderation/people/people.js'
import { presentPersonRecord } from '../../presenters/moderation.js'

/** The answer to an action on a person, with the person as they are now. */
export async function withPerson<Outcome extends object>(
  { services }: FastifyRequest,
  actor: Actor,
  guid: string,
  outcome: Outcome,
): Promise<ReturnType<typeof presentPersonRecord> & Outcome> {
  return { ...presentPersonRecord(await getPersonState(services, actor, guid), services.config), ...outcome }
}
