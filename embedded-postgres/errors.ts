import { StartError } from '../src/errors/start-error.js'

/** The PostgreSQL that comes with the pod cannot do its work here. The message says why and what to do. */
export class EmbeddedPostgresError extends StartError {
  override name = 'EmbeddedPostgresError'
}

/** Another process owns the server of the data folder. */
export class ServerOwnedError extends EmbeddedPostgresError {}
