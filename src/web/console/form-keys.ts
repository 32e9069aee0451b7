import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { claimFormKey, releaseFormKey, storeFormResponse } from '../../persistence/accounts/form-keys.js'
import { formText } from '../forms/form-text.js'
import { RequestFault } from '../server/request-faults.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The key of the form that this request works on, and the end of that work for a repeated click. */
    formKey: { readonly hash: Buffer; readonly end: (location: string | undefined) => void } | undefined
  }
}

/**
 * Works on each sent form once. Of two clicks, the second waits for the first and is led to the same page. A form that changed nothing
 * can be sent again.
 */
export function addFormKeys(app: FastifyInstance): void {
  const running = new Map<string, Promise<string | undefined>>()
  app.decorateRequest('formKey', undefined)

  app.addHook('preHandler', async (request, reply) => {
    const key = formText(request, 'idempotency_key')
    if (request.method !== 'POST' || request.consoleAccess === undefined || key === undefined) return
    const hash = hashOf(request, key)
    const name = hash.toString('hex')
    for (let first = running.get(name); first !== undefined; first = running.get(name)) {
      const location = await first
      if (location !== undefined) return reply.redirect(location, 303)
    }
    let end = (_location: string | undefined) => {}
    const responseOfRun = new Promise<string | undefined>((resolve) => {
      end = (location) => {
        running.delete(name)
        resolve(location)
      }
    })
    running.set(name, responseOfRun)
    const claim = await claimFormKey(request.services.db, hash).catch((error: unknown) => {
      end(undefined)
      throw error
    })
    if (claim.state === 'claimed') request.formKey = { hash, end }
    else {
      end(claim.location)
      if (claim.location !== undefined) return reply.redirect(claim.location, 303)
      throw new RequestFault(409, 'This form is already being processed. Open the page again.')
    }
  })

  app.addHook('onSend', async (request, reply) => {
    const { formKey, services } = request
    if (formKey === undefined) return
    request.formKey = undefined
    const location = reply.statusCode === 303 ? String(reply.getHeader('location')) : undefined
    try {
      if (location === undefined) await releaseFormKey(services.db, formKey.hash)
      else await storeFormResponse(services.db, formKey.hash, location)
    } catch (err) {
      request.log.warn({ err }, 'storing the answer to a form failed')
    } finally {
      formKey.end(location)
    }
  })
}

/** The address of the form is part of it: one key counts for one change. */
function hashOf({ url, console: { formToken } }: FastifyRequest, key: string): Buffer {
  return createHash('sha256').update([formToken.console, url, key].join('\n')).digest()
}
