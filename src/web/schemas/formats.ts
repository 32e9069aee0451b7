import { Type } from 'typebox'

export const Timestamp = Type.String({ format: 'date-time', description: 'UTC, with three decimals.' })

export const Url = Type.String({ format: 'uri', description: 'Absolute.' })
