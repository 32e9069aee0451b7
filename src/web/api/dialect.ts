import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.js'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import type { PodAddresses } from '../presenters/picture-urls.js'

/** The context of presenters whose result depends on the API dialect of the client. */
export interface DialectContext {
  readonly addresses: PodAddresses
  readonly dialect: ClientApiDialect
}

/** The dialect that the client has registered, else that of the setting. */
export function dialectContext(
  config: PodAddresses & Pick<Config, 'clientApiDialect'>,
  { dialect = config.clientApiDialect }: Pick<Viewer, 'dialect'>,
): DialectContext {
  return { addresses: config, dialect }
}

export function readDialect({ server, viewer }: FastifyRequest): DialectContext {
  return dialectContext(server.services.config, viewer)
}
