import type { ReceivableEntity } from '../../../protocol/entities/registry.js'

/** An entity that this pod stores when another pod sends it. */
export type StorableEntity = ReceivableEntity
