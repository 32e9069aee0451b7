import type { ReceivableEntity } from '../../../protocol/entities/registry.js'

/** What is taken in. */
export type StorableEntity = ReceivableEntity
