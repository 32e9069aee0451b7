import type { FastifyRequest } from 'fastify'
import type { Power } from '../../../domain/accounts/role-powers.js'
import { type Actor, findActorOfViewer } from '../../../domain/moderation/actor.js'

/** The person of the token, with the role that they have now. */
export function findRequestActor(request: FastifyRequest, power: Power): Promise<Actor> {
  return findActorOfViewer(request.pod, request.viewer, power, request.id)
}
