// Built by scripts/build-action from deploy/action/src and api/typescript. Do not edit.

// src/main.ts
import { createHash, createHmac } from "node:crypto";
import { readFileSync as readFileSync3 } from "node:fs";
import { resolve } from "node:path";

// ../../api/typescript/src/errors.ts
var DocentError = class extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
};
var ConnectionError = class extends DocentError {
};
var AnswerError = class extends DocentError {
};
var WaitTimeoutError = class extends DocentError {
};
var ApiError = class extends DocentError {
  constructor(status, body, headers) {
    super(body.message || `the server answered ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.details = body.details ?? [];
    this.requestId = body.requestId ?? headers.get("X-Request-Id") ?? "";
    this.limit = body.limit;
    this.challenge = body.challenge;
    this.retryAfter = seconds(headers.get("Retry-After"));
  }
  status;
  /** Stable and for programs; empty where something other than Docent answered, such as a proxy. */
  code;
  /** Each field of the request that is wrong. */
  details;
  /** Names the request in the server's log. */
  requestId;
  /** The quota that is used up. */
  limit;
  /** Where a proof of work can be had that the project asks for with each question. `ask` does that by itself. */
  challenge;
  /** Seconds after which the same request may succeed, where the server says so. */
  retryAfter;
};
var InvalidRequestError = class extends ApiError {
};
var UnauthorizedError = class extends ApiError {
};
var ForbiddenError = class extends ApiError {
};
var NotFoundError = class extends ApiError {
};
var ConflictError = class extends ApiError {
};
var RateLimitError = class extends ApiError {
};
var UnavailableError = class extends ApiError {
};
var classes = {
  400: InvalidRequestError,
  413: InvalidRequestError,
  415: InvalidRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError
};
async function apiError(response) {
  const body = await response.json().catch(() => null);
  return new (classes[response.status] ?? ApiError)(response.status, typeof body === "object" && body !== null ? body : {}, response.headers);
}
function seconds(text) {
  return text !== null && /^[0-9]+$/.test(text) ? Number(text) : void 0;
}

// ../../api/typescript/src/answer.ts
var beginning = "\n\n```suggestions\n";
function shown(text, finished) {
  const at = text.indexOf(beginning);
  if (at >= 0) return at;
  for (let n = finished ? 0 : Math.min(text.length, beginning.length - 1); n > 0; n--) {
    if (text.endsWith(beginning.slice(0, n))) return text.length - n;
  }
  return text.length;
}
var Answer = class {
  constructor(connections) {
    this.connections = connections;
  }
  connections;
  #parts;
  [Symbol.asyncIterator]() {
    if (this.#parts) throw new TypeError("an answer can be read once");
    return this.#parts = follow(this.connections);
  }
  /** whole reads the answer to its end. */
  async whole() {
    for await (const part of this) if (part.type === "finish") return part.answer;
    throw new ConnectionError("the stream ended before the answer was complete");
  }
  /** text yields nothing but the text. It fails if the answer has to start over after some of it was handed over. */
  async *text() {
    for await (const part of this) {
      if (part.type === "text") yield part.text;
      if (part.type === "restart") throw new ConnectionError("the server lost the answer and starts over: read the answer's parts to handle that");
    }
  }
};
async function* follow(c) {
  let known = { threadId: "", threadKey: void 0 };
  let messageId = "";
  let accepted = false;
  let started = false;
  let given = { text: "", sources: 0 };
  for (let tries = 0; ; ) {
    let text = "";
    const sources = [];
    const cards = [];
    let progress = false;
    try {
      const response = tries === 0 ? await c.first() : await c.again(known);
      accepted = true;
      known = { threadId: response.headers.get("X-Thread-Id") ?? known.threadId, threadKey: response.headers.get("X-Thread-Key") ?? known.threadKey };
      const catchUp = function* (finished) {
        const upTo = text.slice(0, shown(text, finished));
        const differs = finished ? upTo !== given.text && !upTo.startsWith(given.text) : !upTo.startsWith(given.text) && !given.text.startsWith(upTo);
        if (differs || finished && sources.length < given.sources) {
          given = { text: "", sources: 0 };
          yield { type: "restart" };
        }
        for (; given.sources < sources.length; given.sources++) yield { type: "source", source: sources[given.sources] };
        if (upTo.length > given.text.length) {
          const more = upTo.slice(given.text.length);
          given.text = upTo;
          progress = true;
          yield { type: "text", text: more };
        }
      };
      for await (const part of c.read(response)) {
        switch (part.type) {
          case "start":
            messageId = part.messageId;
            known = { threadId: part.threadId ?? known.threadId, threadKey: part.threadKey ?? known.threadKey };
            if (!started) yield { type: "start", ...known, messageId };
            started = true;
            break;
          case "text":
            text += part.text;
            yield* catchUp(false);
            break;
          case "source":
            sources.push(part.source);
            yield* catchUp(false);
            break;
          case "card":
            cards.push(part.card);
            break;
          case "error":
            throw new AnswerError(part.message);
          case "finish":
            yield* catchUp(true);
            known.threadId = part.threadId ?? known.threadId;
            yield { type: "finish", answer: {
              ...known,
              messageId,
              text: given.text,
              sources,
              cards,
              suggestions: suggested(text),
              fallbackModel: part.fallback ? part.model : void 0
            } };
            return;
        }
      }
      throw new ConnectionError("the stream ended before the answer was complete");
    } catch (error2) {
      tries = progress ? 1 : tries + 1;
      await c.pause(tries, error2, accepted);
    }
  }
}
function suggested(text) {
  const at = text.indexOf(beginning);
  if (at < 0) return [];
  return Array.from(text.slice(at).matchAll(/\(([^)]*)\)\[([^\]]*)\]/g), (m) => ({ text: m[1], url: m[2] }));
}

// ../../api/typescript/node_modules/openapi-fetch/dist/index.mjs
var PATH_PARAM_RE = /\{[^{}]+\}/g;
var supportsRequestInitExt = () => {
  return typeof process === "object" && Number.parseInt(process?.versions?.node?.substring(0, 2)) >= 18 && process.versions.undici;
};
function randomID() {
  return Math.random().toString(36).slice(2, 11);
}
function createClient(clientOptions) {
  let {
    baseUrl = "",
    Request: CustomRequest = globalThis.Request,
    fetch: baseFetch = globalThis.fetch,
    querySerializer: globalQuerySerializer,
    bodySerializer: globalBodySerializer,
    pathSerializer: globalPathSerializer,
    headers: baseHeaders,
    requestInitExt = void 0,
    ...baseOptions
  } = { ...clientOptions };
  requestInitExt = supportsRequestInitExt() ? requestInitExt : void 0;
  baseUrl = removeTrailingSlash(baseUrl);
  const globalMiddlewares = [];
  async function coreFetch(schemaPath, fetchOptions) {
    const {
      baseUrl: localBaseUrl,
      fetch: fetch2 = baseFetch,
      Request = CustomRequest,
      headers,
      params = {},
      parseAs = "json",
      querySerializer: requestQuerySerializer,
      bodySerializer = globalBodySerializer ?? defaultBodySerializer,
      pathSerializer: requestPathSerializer,
      body,
      middleware: requestMiddlewares = [],
      ...init
    } = fetchOptions || {};
    let finalBaseUrl = baseUrl;
    if (localBaseUrl) {
      finalBaseUrl = removeTrailingSlash(localBaseUrl) ?? baseUrl;
    }
    let querySerializer = typeof globalQuerySerializer === "function" ? globalQuerySerializer : createQuerySerializer(globalQuerySerializer);
    if (requestQuerySerializer) {
      querySerializer = typeof requestQuerySerializer === "function" ? requestQuerySerializer : createQuerySerializer({
        ...typeof globalQuerySerializer === "object" ? globalQuerySerializer : {},
        ...requestQuerySerializer
      });
    }
    const pathSerializer = requestPathSerializer || globalPathSerializer || defaultPathSerializer;
    const serializedBody = body === void 0 ? void 0 : bodySerializer(
      body,
      // Note: we declare mergeHeaders() both here and below because it’s a bit of a chicken-or-egg situation:
      // bodySerializer() needs all headers so we aren’t dropping ones set by the user, however,
      // the result of this ALSO sets the lowest-priority content-type header. So we re-merge below,
      // setting the content-type at the very beginning to be overwritten.
      // Lastly, based on the way headers work, it’s not a simple “present-or-not” check becauase null intentionally un-sets headers.
      mergeHeaders(baseHeaders, headers, params.header)
    );
    const finalHeaders = mergeHeaders(
      // with no body, we should not to set Content-Type
      serializedBody === void 0 || // if serialized body is FormData; browser will correctly set Content-Type & boundary expression
      serializedBody instanceof FormData ? {} : {
        "Content-Type": "application/json"
      },
      baseHeaders,
      headers,
      params.header
    );
    const finalMiddlewares = [...globalMiddlewares, ...requestMiddlewares];
    const requestInit = {
      redirect: "follow",
      ...baseOptions,
      ...init,
      body: serializedBody,
      headers: finalHeaders
    };
    let id;
    let options;
    let request = new Request(
      createFinalURL(schemaPath, { baseUrl: finalBaseUrl, params, querySerializer, pathSerializer }),
      requestInit
    );
    let response;
    for (const key in init) {
      if (!(key in request)) {
        request[key] = init[key];
      }
    }
    if (finalMiddlewares.length) {
      id = randomID();
      options = Object.freeze({
        baseUrl: finalBaseUrl,
        fetch: fetch2,
        parseAs,
        querySerializer,
        bodySerializer,
        pathSerializer
      });
      for (const m of finalMiddlewares) {
        if (m && typeof m === "object" && typeof m.onRequest === "function") {
          const result = await m.onRequest({
            request,
            schemaPath,
            params,
            options,
            id
          });
          if (result) {
            if (result instanceof Request) {
              request = result;
            } else if (result instanceof Response) {
              response = result;
              break;
            } else {
              throw new Error("onRequest: must return new Request() or Response() when modifying the request");
            }
          }
        }
      }
    }
    if (!response) {
      try {
        response = await fetch2(request, requestInitExt);
      } catch (error22) {
        let errorAfterMiddleware = error22;
        if (finalMiddlewares.length) {
          for (let i = finalMiddlewares.length - 1; i >= 0; i--) {
            const m = finalMiddlewares[i];
            if (m && typeof m === "object" && typeof m.onError === "function") {
              const result = await m.onError({
                request,
                error: errorAfterMiddleware,
                schemaPath,
                params,
                options,
                id
              });
              if (result) {
                if (result instanceof Response) {
                  errorAfterMiddleware = void 0;
                  response = result;
                  break;
                }
                if (result instanceof Error) {
                  errorAfterMiddleware = result;
                  continue;
                }
                throw new Error("onError: must return new Response() or instance of Error");
              }
            }
          }
        }
        if (errorAfterMiddleware) {
          throw errorAfterMiddleware;
        }
      }
      if (finalMiddlewares.length) {
        for (let i = finalMiddlewares.length - 1; i >= 0; i--) {
          const m = finalMiddlewares[i];
          if (m && typeof m === "object" && typeof m.onResponse === "function") {
            const result = await m.onResponse({
              request,
              response,
              schemaPath,
              params,
              options,
              id
            });
            if (result) {
              if (!(result instanceof Response)) {
                throw new Error("onResponse: must return new Response() when modifying the response");
              }
              response = result;
            }
          }
        }
      }
    }
    const contentLength = response.headers.get("Content-Length");
    if (response.status === 204 || request.method === "HEAD" || contentLength === "0" && !response.headers.get("Transfer-Encoding")?.includes("chunked")) {
      return response.ok ? { data: void 0, response } : { error: void 0, response };
    }
    if (response.ok) {
      const getResponseData = async () => {
        if (parseAs === "stream") {
          return response.body;
        }
        if (parseAs === "json" && !contentLength) {
          const raw = await response.text();
          return raw ? JSON.parse(raw) : void 0;
        }
        return await response[parseAs]();
      };
      return { data: await getResponseData(), response };
    }
    let error2 = await response.text();
    try {
      error2 = JSON.parse(error2);
    } catch {
    }
    return { error: error2, response };
  }
  return {
    request(method, url, init) {
      return coreFetch(url, { ...init, method: method.toUpperCase() });
    },
    /** Call a GET endpoint */
    GET(url, init) {
      return coreFetch(url, { ...init, method: "GET" });
    },
    /** Call a PUT endpoint */
    PUT(url, init) {
      return coreFetch(url, { ...init, method: "PUT" });
    },
    /** Call a POST endpoint */
    POST(url, init) {
      return coreFetch(url, { ...init, method: "POST" });
    },
    /** Call a DELETE endpoint */
    DELETE(url, init) {
      return coreFetch(url, { ...init, method: "DELETE" });
    },
    /** Call a OPTIONS endpoint */
    OPTIONS(url, init) {
      return coreFetch(url, { ...init, method: "OPTIONS" });
    },
    /** Call a HEAD endpoint */
    HEAD(url, init) {
      return coreFetch(url, { ...init, method: "HEAD" });
    },
    /** Call a PATCH endpoint */
    PATCH(url, init) {
      return coreFetch(url, { ...init, method: "PATCH" });
    },
    /** Call a TRACE endpoint */
    TRACE(url, init) {
      return coreFetch(url, { ...init, method: "TRACE" });
    },
    /** Register middleware */
    use(...middleware) {
      for (const m of middleware) {
        if (!m) {
          continue;
        }
        if (typeof m !== "object" || !("onRequest" in m || "onResponse" in m || "onError" in m)) {
          throw new Error("Middleware must be an object with one of `onRequest()`, `onResponse() or `onError()`");
        }
        globalMiddlewares.push(m);
      }
    },
    /** Unregister middleware */
    eject(...middleware) {
      for (const m of middleware) {
        const i = globalMiddlewares.indexOf(m);
        if (i !== -1) {
          globalMiddlewares.splice(i, 1);
        }
      }
    }
  };
}
function serializePrimitiveParam(name, value, options) {
  if (value === void 0 || value === null) {
    return "";
  }
  if (typeof value === "object") {
    throw new Error(
      "Deeply-nested arrays/objects aren’t supported. Provide your own `querySerializer()` to handle these."
    );
  }
  return `${name}=${options?.allowReserved === true ? value : encodeURIComponent(value)}`;
}
function serializeObjectParam(name, value, options) {
  if (!value || typeof value !== "object") {
    return "";
  }
  const values = [];
  const joiner = {
    simple: ",",
    label: ".",
    matrix: ";"
  }[options.style] || "&";
  if (options.style !== "deepObject" && options.explode === false) {
    for (const k in value) {
      values.push(k, options.allowReserved === true ? value[k] : encodeURIComponent(value[k]));
    }
    const final2 = values.join(",");
    switch (options.style) {
      case "form": {
        return `${name}=${final2}`;
      }
      case "label": {
        return `.${final2}`;
      }
      case "matrix": {
        return `;${name}=${final2}`;
      }
      default: {
        return final2;
      }
    }
  }
  for (const k in value) {
    const finalName = options.style === "deepObject" ? `${name}[${k}]` : k;
    values.push(serializePrimitiveParam(finalName, value[k], options));
  }
  const final = values.join(joiner);
  return options.style === "label" || options.style === "matrix" ? `${joiner}${final}` : final;
}
function serializeArrayParam(name, value, options) {
  if (!Array.isArray(value)) {
    return "";
  }
  if (options.explode === false) {
    const joiner2 = { form: ",", spaceDelimited: "%20", pipeDelimited: "|" }[options.style] || ",";
    const final = (options.allowReserved === true ? value : value.map((v) => encodeURIComponent(v))).join(joiner2);
    switch (options.style) {
      case "simple": {
        return final;
      }
      case "label": {
        return `.${final}`;
      }
      case "matrix": {
        return `;${name}=${final}`;
      }
      // case "spaceDelimited":
      // case "pipeDelimited":
      default: {
        return `${name}=${final}`;
      }
    }
  }
  const joiner = { simple: ",", label: ".", matrix: ";" }[options.style] || "&";
  const values = [];
  for (const v of value) {
    if (options.style === "simple" || options.style === "label") {
      values.push(options.allowReserved === true ? v : encodeURIComponent(v));
    } else {
      values.push(serializePrimitiveParam(name, v, options));
    }
  }
  return options.style === "label" || options.style === "matrix" ? `${joiner}${values.join(joiner)}` : values.join(joiner);
}
function createQuerySerializer(options) {
  return function querySerializer(queryParams) {
    const search = [];
    if (queryParams && typeof queryParams === "object") {
      for (const name in queryParams) {
        const value = queryParams[name];
        if (value === void 0 || value === null) {
          continue;
        }
        if (Array.isArray(value)) {
          if (value.length === 0) {
            continue;
          }
          search.push(
            serializeArrayParam(name, value, {
              style: "form",
              explode: true,
              ...options?.array,
              allowReserved: options?.allowReserved || false
            })
          );
          continue;
        }
        if (typeof value === "object") {
          search.push(
            serializeObjectParam(name, value, {
              style: "deepObject",
              explode: true,
              ...options?.object,
              allowReserved: options?.allowReserved || false
            })
          );
          continue;
        }
        search.push(serializePrimitiveParam(name, value, options));
      }
    }
    return search.join("&");
  };
}
function defaultPathSerializer(pathname, pathParams) {
  let nextURL = pathname;
  for (const match of pathname.match(PATH_PARAM_RE) ?? []) {
    let name = match.substring(1, match.length - 1);
    let explode = false;
    let style = "simple";
    if (name.endsWith("*")) {
      explode = true;
      name = name.substring(0, name.length - 1);
    }
    if (name.startsWith(".")) {
      style = "label";
      name = name.substring(1);
    } else if (name.startsWith(";")) {
      style = "matrix";
      name = name.substring(1);
    }
    if (!pathParams || pathParams[name] === void 0 || pathParams[name] === null) {
      continue;
    }
    const value = pathParams[name];
    if (Array.isArray(value)) {
      nextURL = nextURL.replace(match, serializeArrayParam(name, value, { style, explode }));
      continue;
    }
    if (typeof value === "object") {
      nextURL = nextURL.replace(match, serializeObjectParam(name, value, { style, explode }));
      continue;
    }
    if (style === "matrix") {
      nextURL = nextURL.replace(match, `;${serializePrimitiveParam(name, value)}`);
      continue;
    }
    nextURL = nextURL.replace(match, style === "label" ? `.${encodeURIComponent(value)}` : encodeURIComponent(value));
  }
  return nextURL;
}
function defaultBodySerializer(body, headers) {
  if (body instanceof FormData) {
    return body;
  }
  if (headers) {
    const contentType = headers.get instanceof Function ? headers.get("Content-Type") ?? headers.get("content-type") : headers["Content-Type"] ?? headers["content-type"];
    if (contentType === "application/x-www-form-urlencoded") {
      return new URLSearchParams(body).toString();
    }
  }
  return JSON.stringify(body);
}
function createFinalURL(pathname, options) {
  let finalURL = `${options.baseUrl}${pathname}`;
  if (options.params?.path) {
    finalURL = options.pathSerializer(finalURL, options.params.path);
  }
  let search = options.querySerializer(options.params.query ?? {});
  if (search.startsWith("?")) {
    search = search.substring(1);
  }
  if (search) {
    finalURL += `?${search}`;
  }
  return finalURL;
}
function mergeHeaders(...allHeaders) {
  const finalHeaders = new Headers();
  for (const h of allHeaders) {
    if (!h || typeof h !== "object") {
      continue;
    }
    const iterator = h instanceof Headers ? h.entries() : Object.entries(h);
    for (const [k, v] of iterator) {
      if (v === null) {
        finalHeaders.delete(k);
      } else if (Array.isArray(v)) {
        for (const v2 of v) {
          finalHeaders.append(k, v2);
        }
      } else if (v !== void 0) {
        finalHeaders.set(k, v);
      }
    }
  }
  return finalHeaders;
}
function removeTrailingSlash(url) {
  if (url.endsWith("/")) {
    return url.substring(0, url.length - 1);
  }
  return url;
}

// ../../api/typescript/node_modules/eventsource-parser/dist/errors.js
var ParseError = class extends Error {
  constructor(message, options) {
    super(message);
    this.name = "ParseError";
    this.type = options.type;
    this.field = options.field;
    this.value = options.value;
    this.line = options.line;
  }
};

// ../../api/typescript/node_modules/eventsource-parser/dist/parse.js
var LF = 10;
var CR = 13;
var SPACE = 32;
var MAX_FIELD_PREFIX_LENGTH = 6;
function createParser(config) {
  if (typeof config === "function") {
    throw new TypeError("`config` must be an object, got a function instead. Did you mean `createParser({onEvent: fn})`?");
  }
  const { maxBufferSize, onComment, onError, onEvent, onId, onRetry } = config;
  const pendingFragments = [];
  let pendingFragmentsLength = 0;
  let bomPrefix = "";
  let id;
  let data2 = "";
  let dataLines = 0;
  let eventType;
  let terminated = false;
  let skippingLine = false;
  let skipNextLineFeed = false;
  function feed(chunk) {
    if (terminated) {
      throw new Error("Cannot feed parser: it was terminated after exceeding the configured max buffer size. Call `reset()` to resume parsing.");
    }
    if (bomPrefix !== void 0) {
      chunk = bomPrefix + chunk;
      if (chunk === "" || chunk === "ï" || chunk === "ï»") {
        bomPrefix = chunk;
        return;
      }
      bomPrefix = void 0;
      chunk = chunk.replace(/^(?:\uFEFF|\xEF\xBB\xBF)/, "");
    }
    if (skippingLine || skipNextLineFeed) {
      chunk = resumeAfterSkip(chunk);
      if (!chunk) {
        return;
      }
    }
    if (!pendingFragments.length) {
      const trailing = processLines(chunk);
      if (trailing !== "") {
        storeTrailing(trailing);
      }
      checkForBufferOverflow();
      return;
    }
    if (chunk.indexOf("\n") === -1 && chunk.indexOf("\r") === -1) {
      if (pendingFragmentsLength < MAX_FIELD_PREFIX_LENGTH) {
        const head = pendingFragments.join("") + chunk.slice(0, MAX_FIELD_PREFIX_LENGTH - pendingFragmentsLength);
        if (!shouldBufferTrailing(head)) {
          pendingFragments.length = 0;
          pendingFragmentsLength = 0;
          skippingLine = true;
          return;
        }
      }
      pendingFragments.push(chunk);
      pendingFragmentsLength += chunk.length;
      checkForBufferOverflow();
      return;
    }
    pendingFragments.push(chunk);
    const input2 = pendingFragments.join("");
    pendingFragments.length = 0;
    pendingFragmentsLength = 0;
    storeTrailing(processLines(input2));
    checkForBufferOverflow();
  }
  function resumeAfterSkip(chunk) {
    if (chunk.length === 0) {
      return chunk;
    }
    if (skipNextLineFeed) {
      skipNextLineFeed = false;
      return chunk.charCodeAt(0) === LF ? chunk.slice(1) : chunk;
    }
    const crIndex = chunk.indexOf("\r");
    const lfIndex = chunk.indexOf("\n");
    const lineEnd = crIndex === -1 ? lfIndex : lfIndex === -1 ? crIndex : crIndex < lfIndex ? crIndex : lfIndex;
    if (lineEnd === -1) {
      return "";
    }
    if (lineEnd === chunk.length - 1 && chunk.charCodeAt(lineEnd) === CR) {
      skippingLine = false;
      skipNextLineFeed = true;
      return "";
    }
    skippingLine = false;
    return chunk.slice(lineEnd + (chunk.charCodeAt(lineEnd) === CR && chunk.charCodeAt(lineEnd + 1) === LF ? 2 : 1));
  }
  function storeTrailing(trailing) {
    if (!trailing)
      return;
    if (trailing.charCodeAt(trailing.length - 1) === CR) {
      parseLine(trailing, 0, trailing.length - 1);
      if (checkForBufferOverflow())
        return;
      skipNextLineFeed = true;
      return;
    }
    if (shouldBufferTrailing(trailing)) {
      pendingFragments.push(trailing);
      pendingFragmentsLength = trailing.length;
      return;
    }
    skippingLine = true;
  }
  function shouldBufferTrailing(trailing) {
    const firstCharCode = trailing.charCodeAt(0);
    return firstCharCode === 58 && !!onComment || firstCharCode === 100 && isPotentialField(trailing, "data") || firstCharCode === 101 && isPotentialField(trailing, "event") || firstCharCode === 105 && isPotentialField(trailing, "id") || firstCharCode === 114 && isPotentialField(trailing, "retry");
  }
  function checkForBufferOverflow() {
    if (terminated)
      return true;
    if (maxBufferSize === void 0)
      return false;
    if (pendingFragmentsLength + data2.length <= maxBufferSize)
      return false;
    terminated = true;
    pendingFragments.length = 0;
    pendingFragmentsLength = 0;
    id = void 0;
    data2 = "";
    dataLines = 0;
    eventType = void 0;
    skippingLine = false;
    skipNextLineFeed = false;
    onError === null || onError === void 0 ? void 0 : onError(new ParseError(`Buffered data exceeded max buffer size of ${maxBufferSize} characters`, {
      type: "max-buffer-size-exceeded"
    }));
    return true;
  }
  function processLines(chunk) {
    let searchIndex = 0;
    if (chunk.indexOf("\r") === -1) {
      let lfIndex2 = chunk.indexOf("\n", searchIndex);
      while (lfIndex2 !== -1) {
        if (searchIndex === lfIndex2) {
          if (id !== void 0) {
            onId === null || onId === void 0 ? void 0 : onId(id);
          }
          if (dataLines > 0) {
            onEvent === null || onEvent === void 0 ? void 0 : onEvent({ id, event: eventType, data: data2 });
          }
          id = void 0;
          data2 = "";
          dataLines = 0;
          eventType = void 0;
          searchIndex = lfIndex2 + 1;
          lfIndex2 = chunk.indexOf("\n", searchIndex);
          continue;
        }
        const firstCharCode = chunk.charCodeAt(searchIndex);
        if (isDataPrefix(chunk, searchIndex, firstCharCode)) {
          const valueStart = chunk.charCodeAt(searchIndex + 5) === SPACE ? searchIndex + 6 : searchIndex + 5;
          const value = chunk.slice(valueStart, lfIndex2);
          if (dataLines === 0 && chunk.charCodeAt(lfIndex2 + 1) === LF) {
            if (id !== void 0) {
              onId === null || onId === void 0 ? void 0 : onId(id);
            }
            onEvent === null || onEvent === void 0 ? void 0 : onEvent({ id, event: eventType, data: value });
            id = void 0;
            data2 = "";
            eventType = void 0;
            searchIndex = lfIndex2 + 2;
            lfIndex2 = chunk.indexOf("\n", searchIndex);
            continue;
          }
          data2 = dataLines === 0 ? value : `${data2}
${value}`;
          dataLines++;
        } else if (isEventPrefix(chunk, searchIndex, firstCharCode)) {
          eventType = chunk.slice(chunk.charCodeAt(searchIndex + 6) === SPACE ? searchIndex + 7 : searchIndex + 6, lfIndex2) || void 0;
        } else {
          parseLine(chunk, searchIndex, lfIndex2);
        }
        if (checkForBufferOverflow())
          return "";
        searchIndex = lfIndex2 + 1;
        lfIndex2 = chunk.indexOf("\n", searchIndex);
      }
      return chunk.slice(searchIndex);
    }
    let crIndex = chunk.indexOf("\r", searchIndex);
    let lfIndex = chunk.indexOf("\n", searchIndex);
    while (searchIndex < chunk.length) {
      let lineEnd = -1;
      if (crIndex !== -1 && lfIndex !== -1) {
        lineEnd = crIndex < lfIndex ? crIndex : lfIndex;
      } else if (crIndex !== -1) {
        if (crIndex === chunk.length - 1) {
          lineEnd = -1;
        } else {
          lineEnd = crIndex;
        }
      } else if (lfIndex !== -1) {
        lineEnd = lfIndex;
      }
      if (lineEnd === -1) {
        break;
      }
      parseLine(chunk, searchIndex, lineEnd);
      if (checkForBufferOverflow())
        return "";
      searchIndex = lineEnd + 1;
      if (chunk.charCodeAt(searchIndex - 1) === CR && chunk.charCodeAt(searchIndex) === LF) {
        searchIndex++;
      }
      if (crIndex !== -1 && crIndex < searchIndex) {
        crIndex = chunk.indexOf("\r", searchIndex);
      }
      if (lfIndex !== -1 && lfIndex < searchIndex) {
        lfIndex = chunk.indexOf("\n", searchIndex);
      }
    }
    return chunk.slice(searchIndex);
  }
  function parseLine(chunk, start, end) {
    if (start === end) {
      dispatchEvent();
      return;
    }
    const firstCharCode = chunk.charCodeAt(start);
    if (isDataPrefix(chunk, start, firstCharCode)) {
      const valueStart = chunk.charCodeAt(start + 5) === SPACE ? start + 6 : start + 5;
      const value2 = chunk.slice(valueStart, end);
      data2 = dataLines === 0 ? value2 : `${data2}
${value2}`;
      dataLines++;
      return;
    }
    if (isEventPrefix(chunk, start, firstCharCode)) {
      eventType = chunk.slice(chunk.charCodeAt(start + 6) === SPACE ? start + 7 : start + 6, end) || void 0;
      return;
    }
    if (firstCharCode === 105 && chunk.charCodeAt(start + 1) === 100 && chunk.charCodeAt(start + 2) === 58) {
      const value2 = chunk.slice(chunk.charCodeAt(start + 3) === SPACE ? start + 4 : start + 3, end);
      if (!value2.includes("\0"))
        id = value2;
      return;
    }
    if (firstCharCode === 58) {
      if (onComment) {
        const line2 = chunk.slice(start, end);
        onComment(line2.slice(chunk.charCodeAt(start + 1) === SPACE ? 2 : 1));
      }
      return;
    }
    const line = chunk.slice(start, end);
    const fieldSeparatorIndex = line.indexOf(":");
    if (fieldSeparatorIndex === -1) {
      processField(line, "", line);
      return;
    }
    const field = line.slice(0, fieldSeparatorIndex);
    const offset = line.charCodeAt(fieldSeparatorIndex + 1) === SPACE ? 2 : 1;
    const value = line.slice(fieldSeparatorIndex + offset);
    processField(field, value, line);
  }
  function processField(field, value, line) {
    switch (field) {
      case "event":
        eventType = value || void 0;
        break;
      case "data":
        data2 = dataLines === 0 ? value : `${data2}
${value}`;
        dataLines++;
        break;
      case "id":
        if (!value.includes("\0"))
          id = value;
        break;
      case "retry":
        if (/^\d+$/.test(value)) {
          onRetry === null || onRetry === void 0 ? void 0 : onRetry(parseInt(value, 10));
        } else {
          onError === null || onError === void 0 ? void 0 : onError(new ParseError(`Invalid \`retry\` value: "${value}"`, {
            type: "invalid-retry",
            value,
            line
          }));
        }
        break;
      default:
        onError === null || onError === void 0 ? void 0 : onError(new ParseError(`Unknown field "${field.length > 20 ? `${field.slice(0, 20)}…` : field}"`, { type: "unknown-field", field, value, line }));
        break;
    }
  }
  function dispatchEvent() {
    if (id !== void 0) {
      onId === null || onId === void 0 ? void 0 : onId(id);
    }
    if (dataLines > 0) {
      onEvent === null || onEvent === void 0 ? void 0 : onEvent({
        id,
        event: eventType,
        data: data2
      });
    }
    id = void 0;
    data2 = "";
    dataLines = 0;
    eventType = void 0;
  }
  function reset(options = {}) {
    if (options.consume && pendingFragments.length > 0) {
      const incompleteLine = pendingFragments.join("");
      parseLine(incompleteLine, 0, incompleteLine.length);
    }
    bomPrefix = "";
    id = void 0;
    data2 = "";
    dataLines = 0;
    eventType = void 0;
    pendingFragments.length = 0;
    pendingFragmentsLength = 0;
    terminated = false;
    skippingLine = false;
    skipNextLineFeed = false;
  }
  return { feed, reset };
}
function isDataPrefix(chunk, i, firstCharCode) {
  return firstCharCode === 100 && chunk.charCodeAt(i + 1) === 97 && chunk.charCodeAt(i + 2) === 116 && chunk.charCodeAt(i + 3) === 97 && chunk.charCodeAt(i + 4) === 58;
}
function isEventPrefix(chunk, i, firstCharCode) {
  return firstCharCode === 101 && chunk.charCodeAt(i + 1) === 118 && chunk.charCodeAt(i + 2) === 101 && chunk.charCodeAt(i + 3) === 110 && chunk.charCodeAt(i + 4) === 116 && chunk.charCodeAt(i + 5) === 58;
}
function isPotentialField(line, field) {
  let i = 1;
  while (i < line.length && i < field.length) {
    if (line.charCodeAt(i) !== field.charCodeAt(i)) {
      return false;
    }
    i++;
  }
  return line.length <= field.length || line.charCodeAt(field.length) === 58;
}

// ../../api/typescript/src/stream.ts
var source = ({ url, title = "", providerMetadata }) => {
  const excerpt = providerMetadata?.docent?.excerpt;
  return excerpt ? { type: "card", card: { url, title, excerpt } } : { type: "source", source: { url, title } };
};
async function* chunks(response) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => {
    });
  }
}
async function* events(response) {
  let queue = [];
  const parser = createParser({ onEvent: ({ id, event, data: data2 }) => queue.push({ id, event, data: data2 }) });
  for await (const chunk of chunks(response)) {
    parser.feed(chunk);
    const ready = queue;
    queue = [];
    yield* ready;
  }
}
var metadata = (m) => ({
  ...m?.threadId && { threadId: m.threadId },
  ...m?.threadKey && { threadKey: m.threadKey },
  ...m?.model && { model: m.model },
  ...m?.fallback && { fallback: true }
});
async function* readV2(response) {
  for await (const { data: data2 } of events(response)) {
    if (data2 === "[DONE]") return;
    const part = JSON.parse(data2);
    switch (part.type) {
      case "start":
        yield { type: "start", messageId: part.messageId ?? "", ...metadata(part.messageMetadata) };
        break;
      case "text-delta":
        yield { type: "text", text: part.delta };
        break;
      case "source-url":
        yield source(part);
        break;
      case "error":
        yield { type: "error", message: part.errorText };
        return;
      case "finish":
        yield { type: "finish", ...metadata(part.messageMetadata) };
        return;
    }
  }
}
async function* lines(response) {
  let rest = "";
  for await (const chunk of chunks(response)) {
    const whole = (rest + chunk).split("\n");
    rest = whole.pop();
    yield* whole;
  }
}
async function* readV1(response) {
  let end = {};
  for await (const line of lines(response)) {
    if (line[1] !== ":") continue;
    const value = JSON.parse(line.slice(2));
    switch (line[0]) {
      case "f":
        yield { type: "start", messageId: value.messageId };
        break;
      case "0":
        yield { type: "text", text: value };
        break;
      case "h":
        if (value.sourceType === "url") yield source(value);
        break;
      case "3":
        yield { type: "error", message: value };
        return;
      case "2":
      case "8":
        for (const item of value) if (item?.type === "finish") end = { ...end, ...item };
        break;
      case "d":
        yield { type: "finish", ...metadata({ ...end, ...value }) };
        return;
    }
  }
}

// ../../api/typescript/src/client.ts
var firstTries = 2;
var Docent = class {
  /** Every operation of the API by its path, with the types of the OpenAPI document. It throws what the methods throw, and leaves repeating a
   * POST to you, but for those with an Idempotency-Key. */
  api;
  #retries;
  #fetch;
  #readerToken;
  #assistantKey;
  constructor(options) {
    if (!URL.canParse(options.server)) throw new TypeError(`server: ${JSON.stringify(options.server)} is not an address such as https://docent.example.com`);
    this.#retries = options.retries ?? 5;
    this.#fetch = options.fetch ?? ((request) => fetch(request));
    this.#readerToken = options.readerToken;
    this.#assistantKey = options.assistantKey;
    this.api = createClient({
      baseUrl: options.server,
      credentials: "omit",
      fetch: (request) => this.#send(request),
      headers: { ...options.headers, ...options.key && { Authorization: `Bearer ${options.key}` } }
    });
  }
  /** send returns an answer that is a success. It repeats what can be repeated without doing anything twice. */
  async #send(request) {
    if (this.#assistantKey && request.url.includes("/discovery/")) request.headers.set("Authorization", `Bearer ${this.#assistantKey}`);
    const again = ["GET", "HEAD"].includes(request.method) || request.headers.has("Idempotency-Key");
    for (let tries = 0; ; ) {
      try {
        const response = await this.#identified(again ? request.clone() : request);
        if (response.ok || response.status === 304) return response;
        throw await apiError(response);
      } catch (error2) {
        if (!again) throw connectionError(error2, request.signal);
        await this.#pause(++tries, this.#retries, error2, request.signal);
      }
    }
  }
  /** identified sends a request in the reader's name, where there is one. A token that is refused is fetched again, once. */
  async #identified(request) {
    const reader = this.#readerToken;
    if (!reader) return this.#fetch(request);
    for (let fresh = false; ; fresh = true) {
      const token = typeof reader === "function" ? await reader({ fresh }) : reader;
      const named = request.clone();
      if (token) named.headers.set("X-Docent-Reader", token);
      const response = await this.#fetch(named);
      if (fresh || typeof reader !== "function" || response.status !== 401) return response;
      const refused = await response.clone().json().catch(() => null);
      if (!(typeof refused === "object" && refused !== null && "code" in refused && refused.code === "reader_token")) return response;
    }
  }
  /** pause waits before a try. It throws the error where another try would not help. */
  async #pause(tries, most, error2, signal) {
    const lost = connectionError(error2, signal);
    if (tries > most || !(lost instanceof ConnectionError || lost instanceof UnavailableError)) throw lost;
    const asked = lost instanceof ApiError ? (lost.retryAfter ?? 0) * 1e3 : 0;
    const grown = Math.min(250 * 2 ** (tries - 1), 8e3) * (0.5 + Math.random() / 2);
    await sleep(Math.max(grown, Math.min(asked, 3e4)), signal);
  }
  // The assistant.
  /** ask puts a question to a domain's assistant. Nothing is sent before the answer is read. */
  ask(domain, question) {
    const q = typeof question === "string" ? { question } : question;
    const { signal, protocol = "v2" } = q;
    const chat = crypto.randomUUID();
    const message = crypto.randomUUID();
    const shared = {
      id: chat,
      fp: q.fp ?? "anonymous",
      threadId: q.threadId ?? null,
      threadKey: q.threadKey ?? null,
      ...q.filter && { filter: q.filter },
      ...q.context && { context: q.context },
      ...q.currentPath && { currentPath: q.currentPath },
      ...q.retrievalPageSize !== void 0 && { retrievalPageSize: q.retrievalPageSize }
    };
    const put = async (proof) => {
      const header = proof ? { "X-Altcha": proof } : {};
      const call = { params: { path: { domain }, header }, parseAs: "stream", ...signal && { signal } };
      if (protocol === "v1") {
        const body2 = { ...shared, messages: [{ id: message, role: "user", content: q.question }] };
        return (await this.api.POST("/discovery/v1/assistant/{domain}/message", { ...call, body: body2 })).response;
      }
      const body = { ...shared, messages: [{ id: message, role: "user", parts: [{ type: "text", text: q.question }] }] };
      return (await this.api.POST("/discovery/v2/assistant/{domain}/message", { ...call, body })).response;
    };
    const first = async () => {
      try {
        return await put();
      } catch (error2) {
        if (!(error2 instanceof ForbiddenError && error2.challenge)) throw error2;
        const challenge = await data(this.api.GET("/discovery/v1/assistant/{domain}/challenge", { params: { path: { domain } }, ...signalOf(q) }));
        return put(await solve(challenge, signal));
      }
    };
    return new Answer({
      first,
      again: async (known) => {
        const response = await this.#resume(domain, protocol, known.threadId || chat, known.threadKey ?? q.threadKey, q.fp, signal);
        return response.status === 204 ? first() : response;
      },
      read: protocol === "v1" ? readV1 : readV2,
      pause: (tries, error2, accepted) => this.#pause(tries, accepted ? this.#retries : Math.min(firstTries, this.#retries), error2, signal)
    });
  }
  /** resume reads the newest answer of a thread again from its start, and then live; null where there is none. */
  async resume(domain, threadId, options = {}) {
    const { protocol = "v2", signal, threadKey } = options;
    const open = () => this.#resume(domain, protocol, threadId, threadKey, options.fp, signal);
    const response = await open();
    if (response.status === 204) return null;
    return new Answer({
      first: async () => response,
      again: open,
      read: protocol === "v1" ? readV1 : readV2,
      pause: (tries, error2) => this.#pause(tries, this.#retries, error2, signal)
    });
  }
  async #resume(domain, protocol, id, threadKey, fp, signal) {
    const more = { parseAs: "stream", ...signal && { signal } };
    const header = threadKey ? { "X-Thread-Key": threadKey } : {};
    const query = fp ? { fp } : {};
    if (protocol === "v1") {
      return (await this.api.GET("/discovery/v1/assistant/{domain}/message", { params: { path: { domain }, query: { ...query, chatId: id }, header }, ...more })).response;
    }
    return (await this.api.GET("/discovery/v2/assistant/{domain}/message/{id}/stream", { params: { path: { domain, id }, query, header }, ...more })).response;
  }
  /** search finds the sections that fit a query best, at most one for each page. */
  search(domain, query, call = {}) {
    const body = typeof query === "string" ? { query } : query;
    return data(this.api.POST("/discovery/v1/search/{domain}", { params: { path: { domain } }, body, ...signalOf(call) }));
  }
  /** readPage returns a page of the documentation as Markdown. */
  readPage(domain, page, call = {}) {
    const body = typeof page === "string" ? { path: page } : page;
    return data(this.api.POST("/discovery/v1/page/{domain}", { params: { path: { domain } }, body, ...signalOf(call) }));
  }
  /** rate says what a reader thinks of an answer. A later rating replaces an earlier one. */
  async rate(domain, answer, rating, options = {}) {
    const { threadId, messageId, threadKey } = answer;
    await this.api.POST("/discovery/v1/feedback/{domain}", {
      params: { path: { domain } },
      ...signalOf(options),
      body: { threadId, messageId, rating, threadKey: threadKey ?? null, comment: options.comment ?? null, ...options.fp && { fp: options.fp } }
    });
  }
  /** handOver hands a conversation over to people, at an answer, if the project takes messages for them. */
  async handOver(domain, answer, contact, options = {}) {
    const { threadId, messageId, threadKey } = answer;
    await this.api.POST("/discovery/v1/contact/{domain}", {
      params: { path: { domain } },
      ...signalOf(options),
      body: { threadId, messageId, ...contact, threadKey: threadKey ?? null, ...options.fp && { fp: options.fp } }
    });
  }
  // The agent.
  /** createJob gives the agent an instruction. The job is on disk when this returns. */
  createJob(projectId, job, call = {}) {
    return data(this.api.POST("/v2/agent/{projectId}/job", { params: { path: { projectId }, header: idempotency(call) }, body: job, ...signalOf(call) }));
  }
  /** followUp gives a job one more instruction. */
  followUp(projectId, id, prompt2, call = {}) {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/message", { params: { path: { projectId, id }, header: idempotency(call) }, body: { prompt: prompt2 }, ...signalOf(call) }));
  }
  readJob(projectId, id, call = {}) {
    return data(this.api.GET("/v2/agent/{projectId}/job/{id}", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }
  /** cancelJob stops an active job. */
  cancelJob(projectId, id, call = {}) {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/cancel", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }
  /** archiveJob puts a job away. Its branch and pull request stay. */
  archiveJob(projectId, id, call = {}) {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/archive", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }
  /** jobs yields a project's jobs, newest first. */
  jobs(projectId, filter = {}) {
    const { signal, ...query } = filter;
    return pages(
      (cursor) => data(this.api.GET("/v2/agent/{projectId}/jobs", { params: { path: { projectId }, query: defined({ ...query, limit: 100, cursor }) }, ...signalOf({ signal }) })),
      (page) => page.jobs
    );
  }
  /** jobEvents follows a job: it yields the entries of its log beyond `after`, and returns the job when it has ended. A stream that breaks is
   * taken up where it was. */
  async *jobEvents(projectId, id, options = {}) {
    let after = options.after ?? 0;
    for (let tries = 0; ; ) {
      try {
        const { response } = await this.api.GET("/v2/agent/{projectId}/job/{id}/events", {
          parseAs: "stream",
          ...signalOf(options),
          params: { path: { projectId, id }, header: { "Last-Event-ID": after } }
        });
        if (response.status === 204) return await this.readJob(projectId, id, options);
        for await (const { id: at, event, data: text } of events(response)) {
          tries = 0;
          if (event === "end") return JSON.parse(text);
          if (at === void 0 || at === "") continue;
          after = Number(at);
          yield JSON.parse(text);
        }
        throw new ConnectionError("the job's log broke off");
      } catch (error2) {
        await this.#pause(++tries, this.#retries, error2, options.signal);
      }
    }
  }
  /** waitForJob returns the job when it has ended, whichever way: look at its `status` and `outcome`. */
  async waitForJob(projectId, id, options = {}) {
    const until = deadline(options, `job ${id} has not ended`);
    for (; ; ) {
      const seconds2 = Math.min(30, Math.max(1, Math.ceil(until.left() / 1e3)));
      const job = await until.run((signal) => data(this.api.GET(
        "/v2/agent/{projectId}/job/{id}",
        { params: { path: { projectId, id }, query: { wait: seconds2 } }, signal }
      )));
      if (job.status !== "active") return job;
    }
  }
  // Keeping the documentation up to date.
  /** startUpdate starts re-indexing the documentation, and returns the id of the update. */
  async startUpdate(projectId, call = {}) {
    return (await data(this.api.POST("/v1/project/update/{projectId}", { params: { path: { projectId } }, ...signalOf(call) }))).statusId;
  }
  updateStatus(statusId, call = {}) {
    return data(this.api.GET("/v1/project/update-status/{statusId}", { params: { path: { statusId } }, ...signalOf(call) }));
  }
  /** waitForUpdate returns the update when it has ended: look at its `status`. */
  async waitForUpdate(statusId, options = {}) {
    const until = deadline(options, `update ${statusId} has not ended`);
    for (let pause = 100; ; pause = Math.min(2 * pause, 3e3)) {
      const update = await until.run((signal) => this.updateStatus(statusId, { signal }));
      if (update.status === "success" || update.status === "failure") return update;
      await until.run((signal) => sleep(Math.min(pause, until.left()), signal));
    }
  }
  // Analytics. openapi-fetch leaves out of its types what is always null; the document has it.
  /** conversations yields questions and their answers, newest first. */
  conversations(projectId, filter = {}) {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/assistant", this.#listing(projectId, filter, cursor, 1e3))), (page) => page.conversations);
  }
  readThread(projectId, threadId, call = {}) {
    return data(this.api.GET("/v1/analytics/{projectId}/assistant/threads/{threadId}", { params: { path: { projectId, threadId } }, ...signalOf(call) }));
  }
  /** callers yields who asked, most questions first. */
  callers(projectId, filter = {}) {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/assistant/caller-stats", this.#listing(projectId, filter, cursor))), (page) => page.callers);
  }
  /** searches yields what was searched for, most frequent first. */
  searches(projectId, filter = {}) {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/searches", this.#listing(projectId, filter, cursor))), (page) => page.searches);
  }
  /** feedback yields what readers think of answers, newest first. */
  feedback(projectId, filter = {}) {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/feedback", this.#listing(projectId, filter, cursor))), (page) => page.feedback);
  }
  /** pageFeedback yields how answers were rated, by the pages that they cite. */
  pageFeedback(projectId, filter = {}) {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/feedback/by-page", this.#listing(projectId, filter, cursor))), (page) => page.feedback);
  }
  /** evaluate asks the questions of one conversation, to judge the answers. Nothing of it stays, and it counts as no reader's. */
  async evaluate(projectId, conversation, call = {}) {
    return (await data(this.api.POST("/v1/evaluation/{projectId}", { params: { path: { projectId } }, body: conversation, ...signalOf(call) }))).answers;
  }
  #listing(projectId, { signal, dateFrom, dateTo }, cursor, limit = 100) {
    return { params: { path: { projectId }, query: defined({ dateFrom, dateTo, limit, cursor }) }, ...signalOf({ signal }) };
  }
};
async function solve(challenge, signal) {
  const { algorithm, maxnumber, salt, signature } = challenge;
  const encoder = new TextEncoder();
  for (let number = 0; number <= maxnumber; number++) {
    signal?.throwIfAborted();
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(salt + number)));
    if (Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("") === challenge.challenge) {
      return btoa(JSON.stringify({ algorithm, challenge: challenge.challenge, number, salt, signature }));
    }
  }
  throw new DocentError("the server's challenge has no solution");
}
async function data(call) {
  const { data: body, response } = await call;
  if (body === void 0 || body === null) throw new ApiError(response.status, { message: "the server's answer has no body" }, response.headers);
  return body;
}
var signalOf = ({ signal }) => signal ? { signal } : {};
var idempotency = (call) => ({ "Idempotency-Key": call.idempotencyKey ?? crypto.randomUUID() });
function defined(query) {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== void 0));
}
async function* pages(read, items) {
  for (let cursor; ; ) {
    const page = await read(cursor);
    yield* items(page);
    if (!page.nextCursor) return;
    cursor = page.nextCursor;
  }
}
function connectionError(error2, signal) {
  if (signal?.aborted) return signal.reason;
  if (!(error2 instanceof TypeError)) return error2;
  const cause = error2.cause instanceof Error ? `: ${error2.cause.message}` : "";
  return new ConnectionError(`the connection failed (${error2.message}${cause})`, { cause: error2 });
}
function sleep(ms, signal) {
  return new Promise((resolve2, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve2();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
function deadline(options, what) {
  const ends = options.timeout === void 0 ? Infinity : Date.now() + options.timeout;
  const left = () => Math.max(0, ends - Date.now());
  return {
    left,
    async run(work) {
      const late = new WaitTimeoutError(`${what} after ${options.timeout} ms`);
      if (left() === 0) throw late;
      const stop = new AbortController();
      const passOn = () => stop.abort(options.signal?.reason);
      if (options.signal?.aborted) passOn();
      options.signal?.addEventListener("abort", passOn, { once: true });
      const timer = Number.isFinite(ends) ? setTimeout(() => stop.abort(late), left()) : void 0;
      try {
        return await work(stop.signal);
      } finally {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", passOn);
      }
    }
  };
}

// src/checkdocs.ts
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
function run(binary, args, diff) {
  return new Promise((resolve2, reject) => {
    const child = spawn(binary, args, { stdio: ["pipe", "pipe", "inherit"], cwd: process.env["GITHUB_WORKSPACE"] ?? "." });
    const late = setTimeout(() => child.kill(), 3e5);
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      out += text;
    });
    child.stdin.on("error", () => {
    });
    child.on("error", () => {
      clearTimeout(late);
      reject(new Error(`binary: ${binary} cannot be run; install docent on the runner first`));
    });
    child.on("close", (code) => {
      clearTimeout(late);
      if (code === 0 || code === 6) resolve2(out);
      else reject(new Error(`docent check-docs ended with ${code}`));
    });
    child.stdin.end(diff);
  });
}
async function checkDocs(binary, docs, diff, title, sarif) {
  const dir = mkdtempSync(join(process.env["RUNNER_TEMP"] ?? tmpdir(), "docent-"));
  const [json, markdown] = [join(dir, "pages.json"), join(dir, "comment.md")];
  const files = [`json=${json}`, `markdown=${markdown}`, ...sarif ? [`sarif=${sarif}`] : []];
  try {
    const annotations = await run(binary, [
      "check-docs",
      "--diff",
      "-",
      "--docs",
      docs,
      "--fail-on",
      "never",
      `--message=${title}`,
      "--format",
      "github",
      ...files.flatMap((f) => ["--format", f])
    ], diff);
    const { findings } = JSON.parse(readFileSync(json, "utf8"));
    return {
      pages: findings.map((f) => f.page),
      outdated: findings.filter((f) => f.level === "outdated").length,
      markdown: readFileSync(markdown, "utf8"),
      annotations
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

// src/github.ts
var GitHub = class {
  constructor(api, repository, token) {
    this.api = api;
    this.repository = repository;
    this.token = token;
  }
  api;
  repository;
  token;
  async #ask(method, path, accept, body) {
    const response = await fetch(`${this.api}/repos/${this.repository}/${path}`, {
      method,
      ...body !== void 0 && { body: JSON.stringify(body) },
      signal: AbortSignal.timeout(3e4),
      headers: {
        Authorization: `Bearer ${this.token}`,
        Accept: accept,
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "docent-action",
        "Content-Type": "application/json"
      }
    });
    if (!response.ok) {
      const said = await response.json().catch(() => ({}));
      throw new Error(`GitHub answered ${response.status}${said?.message ? `: ${said.message}` : ""}`);
    }
    return response;
  }
  async #call(method, path, body) {
    return (await this.#ask(method, path, "application/vnd.github+json", body)).json();
  }
  /** diff is what a pull request changes. */
  async diff(number) {
    return (await this.#ask("GET", `pulls/${number}`, "application/vnd.github.diff")).text();
  }
  /** mine tells the comments that the token's owner wrote: a person's by the name, otherwise those of apps. */
  async #mine() {
    const response = await fetch(`${this.api}/user`, { signal: AbortSignal.timeout(3e4), headers: { Authorization: `Bearer ${this.token}`, "User-Agent": "docent-action" } }).catch(() => void 0);
    const login = response?.ok ? (await response.json()).login : void 0;
    return (c) => login ? c.user?.login === login : c.user?.type === "Bot";
  }
  /** say writes the comment that bears the mark, or rewrites the one that is there; if others can make the mark, only its own. */
  async say(number, mark, markdown, guessable = false) {
    const mine = guessable ? await this.#mine() : () => true;
    const body = `${markdown}

<!-- ${mark} -->`;
    for (let page = 1; ; page++) {
      const comments = await this.#call("GET", `issues/${number}/comments?per_page=100&page=${page}`);
      const own = comments.find((c) => c.body?.trimEnd().endsWith(`<!-- ${mark} -->`) && mine(c));
      if (own) {
        if (own.body !== body) await this.#call("PATCH", `issues/comments/${own.id}`, { body });
        return;
      }
      if (comments.length < 100) break;
    }
    await this.#call("POST", `issues/${number}/comments`, { body });
  }
};

// src/runner.ts
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync as readFileSync2 } from "node:fs";
function input(name) {
  return (process.env[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`] ?? "").trim();
}
function flag(name) {
  const text = input(name).toLowerCase();
  if (!["", "true", "false"].includes(text)) throw new InputError(`${name}: ${JSON.stringify(text)} must be true or false`);
  return text === "true";
}
var InputError = class extends Error {
};
var escaped = (text) => text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
function command(name, text, properties = {}) {
  const list = Object.entries(properties).map(([k, v]) => `${k}=${escaped(v).replaceAll(":", "%3A").replaceAll(",", "%2C")}`).join(",");
  process.stdout.write(`::${name}${list && " " + list}::${escaped(text)}
`);
}
var mask = (secret) => {
  if (secret) command("add-mask", secret);
};
var notice = (title, text) => command("notice", text, { title });
var warning = (title, text) => command("warning", text, { title });
var error = (title, text) => command("error", text, { title });
function quoted(title, print) {
  const token = randomUUID();
  process.stdout.write(`::group::${escaped(title)}
::stop-commands::${token}
`);
  return print((text) => process.stdout.write(text.replaceAll("\r", "") + "\n")).finally(() => process.stdout.write(`::${token}::
::endgroup::
`));
}
function output(name, value) {
  const end = `end-${randomUUID()}`;
  append("GITHUB_OUTPUT", `${name}<<${end}
${value}
${end}
`);
}
var summary = (markdown) => append("GITHUB_STEP_SUMMARY", markdown + "\n");
function append(variable, text) {
  const file = process.env[variable];
  if (file) appendFileSync(file, text);
}
function trigger() {
  const file = process.env["GITHUB_EVENT_PATH"];
  const event = file ? JSON.parse(readFileSync2(file, "utf8")) : {};
  return { number: event.pull_request?.number ?? event.issue?.number, title: event.pull_request?.title };
}

// src/main.ts
var reasons = ["failed", "not_understood", "needs_detail", "nothing_to_do", "timeout"];
function settings() {
  for (const secret of ["key", "github-token"]) mask(input(secret));
  const required = (name) => input(name) || fail(`${name}: is required`);
  const server = required("server").replace(/\/+$/, "");
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) fail(`server: ${JSON.stringify(server)} is not an address such as https://docent.example.com`);
  const rerun = input("rerun") || "reuse";
  if (rerun !== "reuse" && rerun !== "new") fail(`rerun: ${JSON.stringify(rerun)} must be reuse or new`);
  const s = {
    server,
    key: required("key"),
    project: required("project"),
    prompt: prompt(),
    branch: input("branch"),
    model: input("model"),
    draft: flag("draft"),
    dryRun: flag("dry-run"),
    wait: duration(input("wait") || "30m"),
    failOn: failOn(),
    newJob: rerun === "new",
    comment: flag("comment"),
    token: input("github-token")
  };
  if (s.branch && s.dryRun) fail("branch: a dry run makes no branch");
  if (s.dryRun && s.wait === 0) fail("wait: a dry run has a diff only when it has ended");
  if (s.comment && !s.token) fail("github-token: is required for a comment");
  return s;
}
function fail(message) {
  throw new InputError(message);
}
function prompt() {
  const file = input("prompt-file");
  if (input("prompt") && file) fail("prompt-file: give either prompt or prompt-file");
  if (!file) return input("prompt") || fail("prompt: is required, or prompt-file");
  try {
    return readFileSync3(resolve(process.env["GITHUB_WORKSPACE"] ?? ".", file), "utf8").trim() || fail(`prompt-file: ${file} is empty`);
  } catch (e) {
    if (e instanceof InputError) throw e;
    return fail(`prompt-file: ${file} cannot be read; the workflow has to check the repository out first (actions/checkout)`);
  }
}
function duration(text) {
  const parts = /^(\d+)\s*(s|m|h)?$/.exec(text);
  if (!parts) return fail(`wait: ${JSON.stringify(text)} must be a time such as 90s, 30m or 2h`);
  return Number(parts[1]) * { s: 1e3, m: 6e4, h: 36e5 }[parts[2] ?? "m"];
}
function failOn() {
  const list = input("fail-on").split(",").map((r) => r.trim()).filter(Boolean);
  for (const r of list) if (!reasons.includes(r)) fail(`fail-on: ${JSON.stringify(r)} is none of ${reasons.join(", ")}`);
  return new Set(list);
}
var step = () => ["GITHUB_REPOSITORY", "GITHUB_WORKFLOW", "GITHUB_JOB", "GITHUB_ACTION"].map((v) => process.env[v] ?? "").join("/");
function once(s) {
  const attempt = s.newJob ? process.env["GITHUB_RUN_ATTEMPT"] ?? "1" : "";
  const instruction = JSON.stringify([step(), s.project, s.prompt, s.branch, s.model, s.draft, s.dryRun, attempt]);
  return `github-${process.env["GITHUB_RUN_ID"] ?? "0"}-${createHash("sha256").update(instruction).digest("hex").slice(0, 32)}`;
}
async function create(docent, s) {
  const model = s.model ? { model: s.model } : {};
  const idempotencyKey = once(s);
  if (!s.branch) return (await docent.createJob(s.project, { prompt: s.prompt, asDraft: s.draft, dryRun: s.dryRun, ...model }, { idempotencyKey })).id;
  const { response } = await docent.api.POST("/v1/agent/{projectId}/job", {
    params: { path: { projectId: s.project }, header: { "Idempotency-Key": idempotencyKey } },
    parseAs: "stream",
    body: { messages: [{ role: "user", content: s.prompt }], branch: s.branch, asDraft: s.draft, ...model }
  });
  await response.body?.cancel();
  return response.headers.get("X-Session-Id") ?? fail("server: it answered without a job");
}
async function follow2(docent, s, id) {
  let diff = "";
  let ended;
  const signal = AbortSignal.timeout(s.wait);
  await quoted(`Job ${id}`, async (line) => {
    try {
      const log = docent.jobEvents(s.project, id, { signal });
      for (let next = await log.next(); ; next = await log.next()) {
        if (next.done) {
          ended = next.value;
          return;
        }
        const e = next.value;
        if (e.diff !== void 0) diff = e.diff;
        const files = e.files?.map((f) => `${f.status} ${f.path} (+${f.added} -${f.removed})`) ?? [];
        line(`${e.at.slice(11, 19)}  ${e.type.padEnd(9)}  ${[e.title, e.text, ...files, e.branch, e.prLink].filter(Boolean).join("\n".padEnd(22))}`);
      }
    } catch (e) {
      if (!signal.aborted || e instanceof ApiError) throw e;
    }
  });
  return { job: ended ?? await docent.readJob(s.project, id), diff, late: !ended };
}
function fenced(text, language = "") {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (m) => m[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}
${text}
${fence}`;
}
function headline({ job, late }, dryRun) {
  if (late || job.status === "active") return "The job is still at work";
  if (job.status === "failed") return "The job has failed";
  switch (job.outcome) {
    case "changed":
      return dryRun ? "The documentation would be changed" : "The documentation was changed";
    case "nothing_to_do":
      return "There was nothing to change";
    case "not_understood":
      return "The instruction was not understood";
    case "needs_detail":
      return "The instruction needs more detail";
    default:
      return "The job has ended";
  }
}
function report(ended, s) {
  const { job, diff } = ended;
  const link = job.prLink && /^https?:\/\/[^\s<>()"]+$/.test(job.prLink) ? `

<${job.prLink}>` : "";
  const changes = s.dryRun && diff ? `

<details><summary>Changes</summary>

${fenced(diff.slice(0, 5e4), "diff")}

</details>` : "";
  return `### Docent: ${headline(ended, s.dryRun)}${link}${job.message ? `

${fenced(job.message.slice(0, 5e3), "text")}` : ""}${changes}

Job \`${job.id}\` of project \`${s.project.replaceAll("`", "")}\``;
}
function verdict({ job, late }) {
  if (late) return "timeout";
  if (job.status === "failed") return "failed";
  return reasons.includes(job.outcome) ? job.outcome : void 0;
}
async function comment(s, markdown) {
  const { number } = trigger();
  if (number === void 0) return warning("Docent", "comment: the workflow was started by no pull request or issue, so there is nothing to comment on");
  const name = createHmac("sha256", s.key || "check-docs").update(`${step()}#${number}`).digest("hex").slice(0, 32);
  await github(s.token).say(number, `docent:${name}`, markdown, !s.key).catch((e) => warning("Docent", `The comment could not be written: ${e.message}`));
}
var github = (token) => new GitHub(process.env["GITHUB_API_URL"] ?? "https://api.github.com", process.env["GITHUB_REPOSITORY"] ?? "", token);
async function check(docs) {
  const token = input("github-token");
  mask(token);
  const { number } = trigger();
  if (number === void 0) return fail("check-docs: the workflow was started by no pull request");
  if (!token) return fail("github-token: is required to read the pull request's change");
  const level = input("check-fail-on") || "never";
  if (!["outdated", "related", "never"].includes(level)) return fail(`check-fail-on: ${JSON.stringify(level)} must be outdated, related or never`);
  const found = await checkDocs(input("binary") || "docent", docs, await github(token).diff(number), trigger().title ?? "", input("sarif"));
  process.stdout.write(found.annotations);
  output("pages", found.pages.join("\n"));
  summary(found.markdown);
  if (flag("comment")) await comment({ key: "", token }, found.markdown);
  const bad = level === "outdated" ? found.outdated : level === "related" ? found.pages.length : 0;
  if (bad) error("Docent", `${bad} pages of the documentation are concerned`);
  return bad === 0;
}
async function run2() {
  const docs = input("check-docs");
  if (docs) return check(docs);
  const s = settings();
  const { protocol, hostname } = new URL(s.server);
  if (protocol === "http:" && !/^(localhost|127\..*|\[::1\])$/.test(hostname)) warning("Docent", "server: the key goes over http, which others can read");
  const docent = new Docent({ server: s.server, key: s.key, headers: { "User-Agent": "docent-action" } });
  const id = await create(docent, s);
  output("job-id", id);
  if (s.wait === 0) {
    const job2 = await docent.readJob(s.project, id);
    output("status", job2.status);
    notice("Docent", `Job ${id} is at work`);
    return true;
  }
  const ended = await follow2(docent, s, id);
  const { job, diff } = ended;
  output("status", job.status);
  output("outcome", job.outcome ?? "");
  output("pr-link", job.prLink ?? "");
  output("summary", job.message);
  output("diff", s.dryRun ? diff : "");
  const markdown = report(ended, s);
  summary(markdown);
  if (s.comment) await comment(s, markdown);
  const why = verdict(ended);
  const text = ended.late ? `${headline(ended, s.dryRun)} after ${input("wait") || "30m"}; it goes on at the server (${id})` : `${headline(ended, s.dryRun)}: ${job.message}`;
  if (why && s.failOn.has(why)) {
    error("Docent", text);
    return false;
  }
  notice("Docent", job.prLink ? `${text}
${job.prLink}` : text);
  return true;
}
run2().then((well) => {
  process.exitCode = well ? 0 : 1;
}, (e) => {
  const details = e instanceof ApiError ? e.details.map((d) => `
${d.field}: ${d.message}`).join("") : "";
  error("Docent", e instanceof WaitTimeoutError || e instanceof Error ? e.message + details : String(e));
  process.exitCode = 1;
});
