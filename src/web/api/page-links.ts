import type { FastifyReply, FastifyRequest } from 'fastify'
import { stripQuery } from '../server/paths.js'

type Changes = Readonly<Record<string, string | number | undefined>>

/** Builds URLs of the same request with other parameters. The query is encoded, so that no value can end the link. */
export function createPageLinks({ url, server }: FastifyRequest): (changes: Changes) => string {
  const path = stripQuery(url)
  const [query = ''] = url.slice(path.length).split('#', 1)
  const address = new URL(path, server.services.config.url).href
  return (changes) => {
    const parameters = new URLSearchParams(query)
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) parameters.delete(name)
      else parameters.set(name, String(value))
    }
    return `${address}?${parameters}`
  }
}

/** Sets the `Link` header to the pages that exist. */
export function sendLinks(reply: FastifyReply, links: Readonly<Record<string, string | undefined>>): void {
  const present = Object.entries(links).flatMap(([name, url]) => (url === undefined ? [] : [`<${url}>; rel="${name}"`]))
  if (present.length > 0) reply.header('link', present.join(', '))
}

/** Sets the `Link` header to the pages at these cursors. */
export function linkCursors(
  request: FastifyRequest,
  reply: FastifyReply,
  { previous, next }: { readonly previous: string | undefined; readonly next: string | undefined },
): void {
  const linkTo = createPageLinks(request)
  sendLinks(reply, {
    next: next === undefined ? undefined : linkTo({ cursor: next }),
    previous: previous === undefined ? undefined : linkTo({ cursor: previous }),
  })
}
