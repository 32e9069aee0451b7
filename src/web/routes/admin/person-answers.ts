import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../../domain/moderation/actor.js'
import { findPersonState } from '../../../domain/moderation/people.js'
import { presentPersonRecord } from '../../presenters/moderation.js'

/** The answer to an action on a person, with the person as they are now. */
export async function withPerson<Outcome extends object>(
  { pod }: FastifyRequest,
  actor: Actor,
  guid: string,
  outcome: Outcome,
): Promise<ReturnType<typeof presentPersonRecord> & Outcome> {
  return { ...presentPersonRecord(await findPersonState(pod, actor, guid), pod.config), ...outcome }
}
