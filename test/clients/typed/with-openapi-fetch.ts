import createClient from 'openapi-fetch'
import type { components, paths } from './generated/openapi-typescript.js'

type StreamEvents = components['schemas']['StreamEvents']

/** Creates a post, finds it in the main stream, comments on it, and handles errors by their reason. */
export async function useOpenapiFetch(base: string, token: string): Promise<readonly string[]> {
  const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } })
  const results: string[] = []

  const created = await client.POST('/api/v1/posts', { body: { public: true, body: 'Typed hello' } })
  if (created.error !== undefined) throw new Error(created.error.reason)
  const { guid } = created.data

  const stream = await client.GET('/api/v1/streams/main', { params: { query: { per_page: 5 } } })
  const found = stream.data?.find((post) => post.guid === guid)
  results.push(`post ${found?.body} by ${found?.author.name}`)

  const params = { path: { post_guid: guid } }
  const comment = await client.POST('/api/v1/posts/{post_guid}/comments', { params, body: { body: 'Typed comment' } })
  results.push(`comment ${comment.data?.body}`)

  const refused = await client.POST('/api/v1/posts', { body: { public: false, body: 'For nobody', aspects: [] } })
  switch (refused.error?.reason) {
    case 'aspects_required':
      results.push(`${refused.error.reason}: ${refused.error.field}`)
      break
    case 'rate_limited':
      results.push(`try again in ${refused.response.headers.get('retry-after')} seconds`)
      break
    default:
      results.push(`unexpected ${refused.error?.reason}`)
  }
  return results
}

/** The types of live events, for a client of `GET /streaming`. */
export function titleOf<Name extends keyof StreamEvents>(name: Name, data: StreamEvents[Name]): string {
  return 'title' in data ? `${name} ${data.title}` : name
}
