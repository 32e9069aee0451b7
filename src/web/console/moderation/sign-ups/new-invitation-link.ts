import type { FastifyReply, FastifyRequest } from 'fastify'

const COOKIE = 'pod_new_invitation'
const SECONDS = 120

/** Keeps the link of a new invitation in the browser for the page that follows: the pod stores only a hash of its code. */
export function setNewLinkCookie(reply: FastifyReply, url: string): void {
  reply.header('set-cookie', cookie(reply, Buffer.from(url).toString('base64url'), SECONDS))
}

/** The link of the invitation that was made just now. It is shown once. */
export function newLinkIn(request: FastifyRequest, reply: FastifyReply): string | undefined {
  const [, encodedUrl] = new RegExp(`(?:^|; )${COOKIE}=([\\w-]+)`).exec(request.headers.cookie ?? '') ?? []
  if (encodedUrl === undefined) return undefined
  reply.header('set-cookie', cookie(reply, '', 0))
  const url = Buffer.from(encodedUrl, 'base64url').toString()
  return url.startsWith(`${request.services.config.url}/users/sign_up?invitation=`) ? url : undefined
}

function cookie({ server }: FastifyReply, value: string, seconds: number): string {
  const secure = server.services.config.url.startsWith('https:') ? '; Secure' : ''
  return `${COOKIE}=${value}; Path=/admin/invitations; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}
