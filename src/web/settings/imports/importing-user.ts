import type { FastifyRequest } from 'fastify'
import { FACTOR_LIMITS } from '../../../domain/accounts/factors/limits.js'
import type { ImportingUser } from '../../../federation/archives/owner.js'

/** The signed-in person as the account that imports. */
export function importingUserOf({ signedIn }: FastifyRequest): ImportingUser {
  const { userId, personId, username, address } = signedIn.account
  return { userId, personId, username, address }
}

/** Whether the person need not authenticate again for a change. */
export function isRecentlyAuthenticated({ signedIn, server }: FastifyRequest): boolean {
  const age = server.services.now().getTime() - signedIn.session.authenticatedAt.getTime()
  return age <= FACTOR_LIMITS.authenticatedSeconds * 1_000
}
