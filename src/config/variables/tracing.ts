import { choice, httpAddress, number, setting, text } from '../schemas.js'

const pairs = text('a list like name=value,name=value')

/** Names, meanings and defaults are those of the OpenTelemetry specification, except for the ratio. */
export const TRACING_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    httpAddress,
    'An OpenTelemetry collector that accepts OTLP/HTTP with JSON. The pod sends spans of requests, inbound batches with their steps, jobs and deliveries. Not set: tracing is off. See [operating.md](operating.md#traces). The settings that begin with `OTEL_` are defined by OpenTelemetry',
    { example: 'http://collector.example:4318' },
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: setting(
    httpAddress,
    'The address for spans, if it is not `/v1/traces` below `OTEL_EXPORTER_OTLP_ENDPOINT`',
    { example: 'http://collector.example:4318/v1/traces' },
  ),
  OTEL_TRACES_SAMPLER: setting(
    {
      type: 'string',
      enum: ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]),
      description: 'always_on, always_off or traceidratio, with or without parentbased_ before it',
    },
    'Which traces are sent: `always_on`, `always_off` or `traceidratio`, with or without `parentbased_` before it',
    { whenNotSet: '`parentbased_traceidratio`', example: 'parentbased_traceidratio' },
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    { type: 'number', minimum: 0, maximum: 1, description: 'a number from 0 to 1' },
    'Share of the traces that is sent, from 0 to 1',
    { whenNotSet: '0.05', example: '0.05' },
  ),
  OTEL_EXPORTER_OTLP_HEADERS: setting(pairs, 'Headers of requests to the collector, like `name=value,name=value`'),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: setting(
    pairs,
    'Headers of requests with spans, instead of `OTEL_EXPORTER_OTLP_HEADERS`',
  ),
  OTEL_EXPORTER_OTLP_TIMEOUT: setting(number(1, 1_000_000, 10_000), 'Milliseconds for a request to the collector'),
  OTEL_EXPORTER_OTLP_COMPRESSION: setting(
    choice(['gzip', 'none']),
    'Compression of requests to the collector: `gzip` or `none`',
    {
      whenNotSet: '`none`',
      example: 'none',
    },
  ),
  OTEL_SERVICE_NAME: setting(text('a name'), 'The name of the service in spans', {
    whenNotSet: '`diaspora-pod-web` or `diaspora-pod-worker`',
    example: 'pod',
  }),
  OTEL_RESOURCE_ATTRIBUTES: setting(pairs, 'Attributes of all spans, like `name=value,name=value`'),
  OTEL_TRACES_EXPORTER: setting(text('otlp or none'), '`none`: no spans are sent', {
    whenNotSet: '`otlp`',
    example: 'otlp',
  }),
  OTEL_SDK_DISABLED: setting(text('true or false'), '`true`: no spans are sent', {
    whenNotSet: '`false`',
    example: 'false',
  }),
  OTEL_BSP_SCHEDULE_DELAY: setting(
    number(1, 1_000_000, 5_000),
    'Milliseconds for which spans are collected before they are sent',
  ),
  OTEL_BSP_MAX_QUEUE_SIZE: setting(number(1, 1_000_000, 2_048), 'Maximum spans that wait to be sent'),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: setting(number(1, 1_000_000, 512), 'Maximum spans of one request'),
} as const
