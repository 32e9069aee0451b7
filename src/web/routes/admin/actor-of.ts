import type { FastifyRequest } from 'fastify'
import type { Power } from '../../../domain/accounts/role-powers.js'
import { type Actor, findActorOfViewer } from '../../../domain/moderation/actor.js'

/** The person of the token, with the role that they have now. */
export function getRequestActor(request: FastifyRequest, power: Power): Promise<Actor> {
  return findActorOfViewer(request.services, request.viewer, power, request.id)
}
