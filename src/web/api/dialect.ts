import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.js'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'

/** The context of presenters whose result depends on the API dialect of the client. */
export interface DialectContext {
  readonly url: string
  readonly dialect: ClientApiDialect
}

/** The dialect that the client has registered, else that of the setting. */
export function dialectContext(
  { url, clientApiDialect }: Pick<Config, 'url' | 'clientApiDialect'>,
  { dialect = clientApiDialect }: Pick<Viewer, 'dialect'>,
): DialectContext {
  return { url, dialect }
}

export function dialectOf({ server, viewer }: FastifyRequest): DialectContext {
  return dialectContext(server.pod.config, viewer)
}
